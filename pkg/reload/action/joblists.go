package action

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
)

// jobLists shares lists of Jobs between the CronJobs of a namespace: a new leader looks at the Jobs of many of them. Such a list may be some
// time old, unlike one before a Job is made: what an earlier leader has done shows in it all the same. The zero value is ready for use.
type jobLists struct {
	mu    sync.Mutex
	lists map[string]*jobList
}

// jobList is a list of the Jobs of a namespace. What it has found is set when it is done.
type jobList struct {
	began time.Time
	done  chan struct{}
	jobs  []cronrun.Job
	err   error
}

// sharedFor is how long a list is used. It is less than the pause between two looks at the Jobs: each look of the same CronJob finds another list.
const sharedFor = unprovenLook - 10*time.Second

// of returns the Jobs of a namespace by a list that is under way, or that was made a short time ago. A missing permission is an answer, too.
func (l *jobLists) of(
	ctx context.Context, namespace string, now time.Time, list func() ([]cronrun.Job, error),
) ([]cronrun.Job, error) {
	shared, begins := l.join(namespace, now)
	if begins {
		shared.err = recovering.Func(func() (err error) {
			shared.jobs, err = list()
			return err
		})()
		if shared.err != nil && !apianswer.Unauthorized(shared.err) {
			l.drop(namespace, shared)
		}
		close(shared.done)
		time.AfterFunc(sharedFor, func() { l.drop(namespace, shared) })
	}
	select {
	case <-shared.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !begins && errors.Is(shared.err, largeread.ErrWaiting) {
		return list() // the turn of the namespace for large objects may be that of this caller
	}
	return shared.jobs, shared.err
}

// join returns the list to use, and whether the caller must make it.
func (l *jobLists) join(namespace string, now time.Time) (shared *jobList, begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if shared, ok := l.lists[namespace]; ok && now.Sub(shared.began) < sharedFor {
		return shared, false
	}
	if l.lists == nil {
		l.lists = map[string]*jobList{}
	}
	shared = &jobList{began: now, done: make(chan struct{})}
	l.lists[namespace] = shared
	return shared, true
}

// drop forgets a list, unless a later one is in its place.
func (l *jobLists) drop(namespace string, shared *jobList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[namespace] == shared {
		delete(l.lists, namespace)
	}
}
