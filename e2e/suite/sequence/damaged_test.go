package sequence_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// A Record that was damaged where no webhook answered is written again, and an Event reports that. The config-hash still detects each
// change.
func TestDamagedRecordIsWrittenAgain(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.AwaitKnown(w)
	intact := s.Get(w).GetAnnotations()[fixture.ConfigRecord]
	for damaged, why := range map[string]string{"garbage": "it has version", strings.ReplaceAll(intact, "=", ""): "item 1"} {
		writeRecord(s, w, damaged)
		s.AwaitWorkload(w, "the config-record is as before", func(o *unstructured.Unstructured) bool {
			return o.GetAnnotations()[fixture.ConfigRecord] == intact
		})
		s.AwaitEvent(w, "RecordAdopted", "the config-record was damaged", why, "proves that no change is missed")
	}
	s.AwaitExactly(0, "what is running is as it was", w)
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "a change of the configuration")
}
