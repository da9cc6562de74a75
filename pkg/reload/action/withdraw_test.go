package action

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// unserved stores patches of a Deployment for which the API server calls no webhook, or only one that purges requests.
type unserved struct {
	client.Client
	raw []byte
	// purges is the merge patch of the webhook; empty if none is called.
	purges string
	// requested and read are patches of another writer, after the request for a reload is stored and after the Deployment is read.
	requested, read string
	// err is the answer to JSON patches, denied the one to those that change the pod template; writes counts all patches.
	err, denied error
	writes      int
}

func (c *unserved) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	err := json.Unmarshal(c.raw, &object.(*unstructured.Unstructured).Object)
	return errors.Join(err, c.merge(c.read))
}

func (c *unserved) Patch(_ context.Context, answer client.Object, patch client.Patch, _ ...client.PatchOption) error {
	c.writes++
	body, err := patch.Data(answer)
	if err != nil {
		return err
	}
	if patch.Type() == types.MergePatchType {
		return errors.Join(c.merge(string(body)), c.request(answer))
	}
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil || c.err != nil {
		return errors.Join(err, c.err)
	}
	if c.denied != nil && strings.Contains(string(body), `"/spec/template/`) {
		return c.denied
	}
	patched, err := operations.Apply(c.raw)
	if err != nil {
		return failedTest()
	}
	c.raw = patched
	if strings.Contains(string(body), `"add","path":"/metadata/annotations/`+strings.ReplaceAll(configHash, "/", "~1")) {
		return c.request(answer)
	}
	return json.Unmarshal(c.raw, answer)
}

// request is what follows once a request for a reload is stored.
func (c *unserved) request(answer client.Object) error {
	return errors.Join(c.merge(c.purges), json.Unmarshal(c.raw, answer), c.merge(c.requested))
}

func (c *unserved) merge(patch string) (err error) {
	if patch == "" {
		return nil
	}
	c.raw, err = jsonpatch.MergePatch(c.raw, []byte(patch))
	return err
}

// The watch may be behind: the workload has left the scope since, so that no webhook purges the request.
func TestRequestOutOfScopeIsRemoved(t *testing.T) {
	t.Parallel()
	const dummy = annotation.DefaultPrefix + "config-hash"
	other := func(value string) string { return `{"metadata":{"annotations":{"` + dummy + `":` + value + `}}}` }
	for name, tc := range map[string]struct {
		requested, read string
		err             error
		// remains is the request that is stored in the end: that of a client, or of the loop.
		remains string
		writes  int
	}{
		"nothing else happens":                    {writes: 2},
		"another writer has removed it":           {requested: other(`null`), writes: 1},
		"a client has made a request since":       {requested: other(`"client"`), remains: "client", writes: 1},
		"a client makes a request meanwhile":      {read: other(`"client"`), remains: "client", writes: 2},
		"the API server refuses the second write": {err: errors.New("refused"), remains: "loop", writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			ring := digesttest.Ring(t, "a")
			web := reloadtest.Reloaded(reloadtest.Web(t), reloadtest.ReloadAt(now.Add(-time.Hour), "before"))
			annotations := map[string]string{annotation.DefaultPrefix + "configmaps": "app", "note": "of a user"}
			raw, err := json.Marshal(map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
					"namespace": "shop", "name": "web", "uid": web.Object.UID(), "annotations": annotations, "labels": map[string]string{"tier": "other"},
				}, "spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
			})
			require.NoError(t, err)
			c, out := &unserved{raw: raw, requested: tc.requested, read: tc.read, err: tc.err}, &reloadtest.Outbox{}
			actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c, Webhook: true, InScope: notOther}, out)
			input := policy.Input{Ring: ring}
			proof, err := actions.requests.currentDigest(t.Context(), web, input, policy.Verdict{})
			require.NoError(t, err)

			ctx, remedies := countRemedies(t)
			assert.Zero(t, actions.requests.send(ctx, web, input, policy.Verdict{}).close(ctx, actions.base), "the watch brings it back")
			assert.Equal(t, tc.remains == "loop", *remedies == 1, "only its own request is one to remove")
			stored := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(c.raw, &stored.Object))
			switch tc.remains {
			case "":
			case "loop":
				annotations[dummy] = poke.Dummy(proof, web.Object.Generation())
			default:
				annotations[dummy] = tc.remains
			}
			assert.Equal(t, annotations, stored.GetAnnotations())
			assert.Equal(t, tc.writes, c.writes)
			assert.Empty(t, out.Notes())
		})
	}
}
