package sequence_test

import (
	"testing"

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
	for _, damaged := range []string{"garbage", "v1:", s.Get(w).GetAnnotations()[fixture.ConfigRecord][:30]} {
		writeRecord(s, w, damaged)
		s.AwaitEvent(w, "RecordAdopted", "the config-record was damaged", "the current configuration is adopted as the running one")
		s.AwaitKnown(w)
	}
	s.Settled()
	s.RequireChanges(w, 0, "what is running is as it was")
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "a change of the configuration")
}
