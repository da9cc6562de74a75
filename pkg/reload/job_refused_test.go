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

// A Job that cannot be created again would stay due for ever, and run again when the permission is granted days later.
func TestJobThatFinishesAfterItsRecreationWasRefusedIsLeftAlone(t *testing.T) {
	t.Parallel()
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	forbidden := apierrors.NewForbidden(reloadtest.Resource("Job"), "", nil)
	forbidden.ErrStatus.Message = `jobs.batch is forbidden: User "x" cannot create resource "jobs"`
	for name, tc := range map[string]struct {
		err    error
		finish string
		want   []string
		notes  int
	}{
		"refused, then it finishes": {err: forbidden, finish: "after", notes: 1},
		"it finishes, then refused": {err: forbidden, finish: "before", notes: 1},
		"a failure that passes":     {err: errors.New("the connection is lost"), finish: "after", want: reloadtest.RecreationSteps},
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
			j.reconcile(t, l)
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
