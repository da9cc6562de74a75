package stamp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

// A CI job creates an object of a new name that an expression matches, and deletes it, again and again. Names that are used once
// neither fill the Record nor displace an object that exists, though its name comes last; each change restarts once.
func TestNamesThatAreUsedOnceDoNotFillTheRecord(t *testing.T) {
	t.Parallel()
	const names = 120
	for name, tc := range map[string]struct {
		dialect annotation.Stakater
		// modified says that each object changes once while it exists.
		modified bool
		// tracked is how much is tracked at most when an object is gone. Its content is known until the next stamp.
		tracked int
	}{
		"modified":                    {modified: true, tracked: 2},
		"modified, deletions trigger": {dialect: annotation.Stakater{ReloadOnDelete: true}, modified: true, tracked: 1},
		"deletions trigger":           {dialect: annotation.Stakater{ReloadOnDelete: true}, tracked: 1},
		"nothing triggers":            {tracked: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.dialect.Keys = annotation.NewStakaterKeys()
			w := newWorld(t)
			w.reader.Dialects = []annotation.Dialect{tc.dialect}
			w.reader.Objects = func(string) (annotation.Objects, error) {
				objects := annotation.Listed{}
				for ref := range w.configs {
					objects[ref] = annotation.Traits{}
				}
				return objects, nil
			}
			stays := secret("job-zzz")
			w.set(stays, "x")
			require.Nil(t, w.create(w.manifest(map[string]string{"secret.reloader.stakater.com/reload": "job-.*"})))
			restarts, most := 0, 0
			for n := range names {
				once := secret(fmt.Sprintf("job-%d", n))
				w.set(once, "x")
				w.quiesce()
				if tc.modified {
					w.set(once, "y")
					w.quiesce()
					restarts++
				}
				w.remove(once)
				if w.quiesce(); tc.dialect.ReloadOnDelete {
					restarts++
				}
				require.Equal(t, restarts, w.restarts, "%s", once)
				if n%40 == 39 {
					w.set(stays, fmt.Sprint("x", n))
					w.quiesce()
					restarts++
					require.Equal(t, restarts, w.restarts, "%s after %s", stays, once)
				}
				view := w.view()
				require.Zero(t, view.Intent.Dropped, "%s", once)
				most = max(most, len(view.Intent.Tracked))
			}
			assert.Equal(t, tc.tracked, most, "what is tracked when an object is gone")
		})
	}
}
