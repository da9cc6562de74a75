package edge_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// removing answers with a patch that removes an annotation from the workload that is named after it.
func removing(_ context.Context, request *admissionv1.AdmissionRequest) string {
	object := &metav1.PartialObjectMetadata{}
	key := "pod-reloader.cs.sap.com/" + request.Name
	if json.Unmarshal(request.Object.Raw, object) != nil || object.Annotations[key] == "" {
		return ""
	}
	return `[{"op":"remove","path":"/metadata/annotations/` + strings.ReplaceAll(key, "/", "~1") + `"}]`
}

// Another webhook is called after ours each time, and removes one annotation of ours from a workload.
func TestAnnotationThatAnotherWebhookRemoves(t *testing.T) {
	t.Parallel()
	s := stage(t)
	fixture.Webhook{Mutating: true, Patient: true, Again: true, Answer: removing}.Register(s)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	explained := s.Deployment("last-reload", fixture.Uses{ConfigMaps: []string{"app"}})
	recorded := s.Deployment("config-record", fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "app"}})
	s.AwaitKnown(explained)
	event := s.AwaitEvent(recorded, "AdoptionFailed", "the config-record is not stored", "changes are not acted on")
	assert.Equal(t, "Warning", event.Type)

	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "the configuration has changed", explained)
	s.AwaitEvent(explained, "Reloaded", "configmap/app modified")
	s.AwaitEvent(explained, "ReloadUnrecorded", "the annotation last-reload is not stored")
	s.AssertChanges(recorded, 0, "nothing is known of it, as the Event says")
}
