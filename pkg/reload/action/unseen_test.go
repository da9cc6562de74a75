package action

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// unhandled stores a request for a reload as it is: no webhook handles it.
type unhandled struct {
	stored
	types []types.PatchType
}

func (c *unhandled) Patch(ctx context.Context, answer client.Object, patch client.Patch, opts ...client.PatchOption) error {
	c.types = append(c.types, patch.Type())
	if patch.Type() == types.JSONPatchType {
		return c.stored.Patch(ctx, answer, patch, opts...)
	}
	body, err := patch.Data(answer)
	if err != nil {
		return err
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &object); err != nil {
		return err
	}
	answer.SetAnnotations(object.Annotations)
	return nil
}

func TestRequestThatNoWebhookHandlesBecomesADirectStamp(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := reloadtest.ReloadAt(now.Add(-time.Hour), "before")
	web := reloadtest.Reloaded(reloadtest.Web(t), before)
	c, out := &unhandled{stored: stored{
		uid: types.UID(web.Object.UID()), hash: before.Hash, webhook: func(written string) string { return written }, annotations: map[string]string{
			annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "last-reload": before.String(),
			annotation.DefaultPrefix + "config-record": recordOf(ring, before.Hash),
		},
	}}, &reloadtest.Outbox{}
	actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c, Webhook: true}, out)
	result := actions.requests.send(t.Context(), web, policy.Input{Ring: ring}, policy.Verdict{}).close(t.Context(), actions.base)
	assert.Zero(t, result.RequeueAfter)
	assert.Equal(t, []types.PatchType{types.MergePatchType, types.JSONPatchType}, c.types)
	assert.Equal(t, []string{"pod template updated: configmap/app deleted"}, out.Notes())
}
