package action

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// lister is a resumption whose API server has no manifests.
type lister struct {
	resumption

	lists  int
	logged []string // the lines
}

// newLister returns one whose lists fail as fails says.
func newLister(jobs Jobs, fails func(list int) error) *lister {
	l := &lister{}
	m := newManifests(&reloadtest.JobAPI{Before: func(string) error {
		l.lists++
		return fails(l.lists)
	}})
	log := funcr.New(func(_, line string) { l.logged = append(l.logged, line) }, funcr.Options{})
	l.resumption = resumption{m, jobs, queue.New(&queue.Leadership{}, time.Now), log}
	return l
}

// firstFail lets the first lists fail.
func firstFail(errs ...error) func(list int) error {
	return func(list int) error {
		if list > len(errs) {
			return nil
		}
		return errs[list-1]
	}
}

// The reason is logged where it is news. Where Jobs are not followed, the permission may be left out.
func TestManifestsAreListedUntilThatSucceeds(t *testing.T) {
	t.Parallel()
	away, refused := errors.New("away"), forbidden("Secret")
	may := func(allowed bool, err error) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return allowed, err }
	}
	allowedAfter := func(refusals int) func(context.Context) (bool, error) {
		asked := 0
		return func(context.Context) (bool, error) {
			asked++
			return asked > refusals, nil
		}
	}
	const retries, givesUp, mayNot = "again; retrying", "created again\"", "no Job is created again: there is no permission to list the manifests"
	for name, tc := range map[string]struct {
		jobs     Jobs
		fails    []error
		lists    int
		logged   []string // a part of each line
		unlisted bool
	}{
		"at once":                                 {jobs: Jobs{Follow: true, MayList: may(true, nil)}, lists: 1},
		"whether they may be is not known":        {jobs: Jobs{Follow: true, MayList: may(false, away)}, lists: 1},
		"no permission at first, as is known":     {jobs: Jobs{Follow: true, MayList: allowedAfter(2)}, lists: 1, logged: []string{mayNot}},
		"one reason":                              {jobs: Jobs{Follow: true}, fails: []error{away, away, away}, lists: 4, logged: []string{retries}},
		"two reasons":                             {jobs: Jobs{Follow: true}, fails: []error{away, refused, refused}, lists: 4, logged: []string{retries, retries}},
		"not followed":                            {lists: 1},
		"not followed, no answer":                 {fails: []error{away}, lists: 2, logged: []string{retries}},
		"not followed, no permission":             {fails: []error{refused}, lists: 1, logged: []string{givesUp}, unlisted: true},
		"not followed, no permission as is known": {jobs: Jobs{MayList: may(false, nil)}, logged: []string{givesUp}, unlisted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLister(tc.jobs, firstFail(tc.fails...))
				l.resume(t.Context())
				assert.Equal(t, []any{tc.lists, !tc.unlisted}, []any{l.lists, l.known.AreListed()})
				require.Len(t, l.logged, len(tc.logged))
				for i, line := range tc.logged {
					assert.Contains(t, l.logged[i], line)
				}
			})
		})
	}
}

func TestListOfManifestsThatFailsAtTheEndOfTheProcessIsNotLogged(t *testing.T) {
	t.Parallel()
	l := newLister(Jobs{Follow: true}, firstFail(errors.New("away")))
	ended, end := context.WithCancel(t.Context())
	end()
	l.resume(ended)
	assert.Equal(t, 1, l.lists)
	assert.Empty(t, l.logged)
}

// No Job is created again until the manifests are listed. No request is refused to an installation that knows that it has no permission.
func TestManifestsAreListedWithinAHalfMinuteAfterThePermissionIsBack(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"the list is refused": false, "it is known": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const withdrawn = 9 * time.Minute
				start := time.Now()
				granted := func() bool { return time.Since(start) >= withdrawn }
				l := newLister(Jobs{Follow: true, MayList: func(context.Context) (bool, error) { return !known || granted(), nil }}, func(int) error {
					if granted() {
						return nil
					}
					return forbidden("Secret")
				})
				l.resume(t.Context())
				assert.True(t, l.known.AreListed(), "the manifests are listed in the end")
				assert.LessOrEqual(t, time.Since(start), withdrawn+33*time.Second, "30 s and a tenth")
				assert.Less(t, l.lists, 30)
				if known {
					assert.Equal(t, 1, l.lists)
				}
			})
		})
	}
}
