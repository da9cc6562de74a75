package action

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// twice is an API server that calls our webhook twice, since another one changes the Deployment after the first call. The configuration changes
// in between.
type twice struct {
	unserved
	reader        stamp.Reader
	first, second stamp.Inputs
}

func (c *twice) Patch(ctx context.Context, answer client.Object, patch client.Patch, opts ...client.PatchOption) error {
	old := c.raw
	if err := c.unserved.Patch(ctx, answer, patch, opts...); err != nil {
		return err
	}
	body, err := patch.Data(answer)
	if err != nil || !bytes.Contains(body, []byte("config-hash")) {
		return err // no request
	}
	for _, live := range []stamp.Inputs{c.first, c.second} {
		if err := c.call(old, live); err != nil {
			return err
		}
		if err := c.merge(`{"spec":{"template":{"metadata":{"labels":{"injected":"true"}}}}}`); err != nil {
			return err
		}
	}
	if err := c.merge(`{"metadata":{"generation":7}}`); err != nil {
		return err
	}
	answer.SetAnnotations(nil)
	return json.Unmarshal(c.raw, answer)
}

// call is one call of the webhook.
func (c *twice) call(old []byte, live stamp.Inputs) error {
	var before, written map[string]any
	if err := json.Unmarshal(old, &before); err != nil {
		return err
	}
	if err := json.Unmarshal(c.raw, &written); err != nil {
		return err
	}
	current := workload.Object{Kind: workload.Deployment(), Raw: written}
	request, _ := c.reader.NewWrite(&workload.Object{Kind: workload.Deployment(), Raw: before}, current)
	decided := stamp.Choose(request).Apply(request, live)
	if decided.Reject != nil {
		return errors.New(decided.Reject.Message)
	}
	body, err := json.Marshal(c.reader.Operations(current, decided.Managed))
	if err != nil {
		return err
	}
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return err
	}
	c.raw, err = operations.Apply(c.raw)
	return err
}

// The second call stamps a newer configuration than the request has proven. The reload is the one that was asked for, and its pause stays.
func TestReloadIsRecognizedWhereTheSecondCallReadsANewerConfiguration(t *testing.T) {
	t.Parallel()
	for name, overtaken := range map[string]int{"for one generation": 0, "for each generation": int(state.FewConflicts)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			ring, app := digesttest.Ring(t, "a"), reference.Ref{Kind: reference.ConfigMap, Name: "app"}
			web, raw := pausingDeployment(t, ring, now)
			object := &corev1.ConfigMap{Data: map[string]string{"key": "newer"}}
			object.Namespace, object.Name = "shop", "app"
			reads := func(s digest.State) stamp.Inputs {
				return stamp.Inputs{States: map[reference.Ref]digest.State{app: s}, Ring: ring, Namespace: "shop", Now: now}
			}
			c := &twice{
				unserved: unserved{raw: raw},
				first:    reads(digest.State{Absent: true}), second: reads(digest.StateOf(digest.OfConfigMap(object), "uid", "2", ring)),
			}
			actions := newActions(Options{
				Gather: withPauses(absentApp(t, c, ring, now)), Client: c, Webhook: true, InScope: notOther, PausedAt: pausedAt,
			}, &reloadtest.Outbox{})
			c.reader = actions.gather.Reader
			for range overtaken {
				actions.backoff.When(web.Key, state.Overtaken)
			}
			in := actions.gather.Input(web)
			require.NoError(t, actions.gather.Read(t.Context(), web, in, in.Refs))
			ended := actions.requests.send(t.Context(), web, in, policy.Assess(in).Verdict)
			assert.Contains(t, string(c.raw), `"paused":true`)
			require.IsType(t, reloaded{}, ended)
			var stored metav1.PartialObjectMetadata
			require.NoError(t, json.Unmarshal(c.raw, &stored))
			assert.Equal(t, stored.Annotations[actions.annotations.LastReload], ended.(reloaded).last.String())
		})
	}
}
