package reload

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// refused reconciles the Job as often as it takes until what is refused is reported, and does not pass by itself.
func (j *jobFixture) refused(t testing.TB, l *loop) {
	t.Helper()
	for range 4 {
		again := j.reconcile(t, l).RequeueAfter
		assert.Positive(t, again)
		j.Now = j.Now.Add(again)
	}
}

// A Job that may not be created again would stay due for ever, and run again when the permission is granted days later.
func TestJobThatFinishesAfterItsRecreationWasRefusedIsLeftAlone(t *testing.T) {
	t.Parallel()
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	forbidden := apierrors.NewForbidden(reloadtest.Resource("Job"), "", nil)
	forbidden.ErrStatus.Message = `jobs.batch is forbidden: User "x" cannot create resource "jobs"`
	for name, tc := range map[string]struct {
		err    error
		once   bool
		finish string
		want   []string
		notes  int
	}{
		"refused, then it finishes": {err: forbidden, finish: "after", notes: 1},
		"it finishes, then refused": {err: forbidden, finish: "before", notes: 1},
		"refused once":              {err: forbidden, once: true, finish: "after", want: reloadtest.RecreationSteps},
		"a failure that passes":     {err: errors.New("the connection is lost"), once: true, finish: "after", want: reloadtest.RecreationSteps},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			l := j.leader(t)
			j.report(workload.Summary{}, reloadtest.Summary(reloadtest.JobKind, j.Stored().Object), "")
			j.changed(l)
			j.API.Before = failing(reloadtest.RecreationSteps[0], tc.err)
			if tc.finish == "before" {
				j.finish(complete)
			}
			if j.reconcile(t, l); !tc.once {
				j.refused(t, l)
			}
			assert.Len(t, j.Notes(), tc.notes)
			if tc.finish == "after" {
				j.finish(complete)
			}
			j.Now = j.Now.Add(time.Hour)
			j.API.Before, j.API.Calls = nil, nil
			assert.Zero(t, j.reconcile(t, l).RequeueAfter)
			_, due := l.state.Due.Oldest()
			assert.Zero(t, due)
			assert.ElementsMatch(t, tc.want, j.Writes())
		})
	}
}
