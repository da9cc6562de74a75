package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

func TestLoadJudgesWorkloads(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	restart := func(second int, hash string) observe.Change {
		return observe.Change{
			Time: start.Add(time.Duration(second) * time.Second), AnnotationsAfter: map[string]string{configHashKey: hash},
		}
	}
	// The object is changed twice, the last time in second 10; the workload is created in second 1.
	for name, test := range map[string]struct {
		edits           int
		last, created   int
		changes         []observe.Change
		missed, doubled int
	}{
		"a restart for each change":            {2, 10, 1, []observe.Change{restart(6, "a"), restart(11, "b")}, 0, 0},
		"one restart for both":                 {2, 10, 1, []observe.Change{restart(11, "b")}, 0, 0},
		"no restart":                           {2, 10, 1, nil, 1, 0},
		"no restart after the last change":     {2, 10, 1, []observe.Change{restart(6, "a")}, 1, 0},
		"created after the last change":        {2, 10, 12, nil, 0, 0},
		"two restarts for one content":         {2, 10, 1, []observe.Change{restart(11, "b"), restart(12, "b")}, 0, 1},
		"more restarts than changes":           {1, 10, 1, []observe.Change{restart(11, "b"), restart(12, "c")}, 0, 1},
		"a restart though nothing has changed": {0, -1, 1, []observe.Change{restart(11, "b")}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &loadRun{
				load:    load{name: "test", namespaces: 1, objects: 1, workloads: 1, uses: 1},
				began:   []time.Time{start.Add(time.Duration(test.last) * time.Second)},
				edits:   []int{test.edits},
				created: []time.Time{start.Add(time.Duration(test.created) * time.Second)},
			}
			assert.Equal(t, test.missed, r.missed(0, test.changes), "missed")
			assert.Equal(t, test.doubled, r.doubled(0, test.changes), "doubled")
		})
	}
}
