package tracking

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What waits for something else is looked at for an event later, and not never.
func TestEventOfAWorkloadThatWaitsQueuesItForLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, q := leading(t, Options{})
		defer q.ShutDown()
		app, key := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, workload.Key{Namespace: "shop", Name: "web"}
		l.tracking.index.Set(key, []reference.Ref{app})
		change := func() {
			l.tracking.ConfigChanged(configstate.Event{Namespace: key.Namespace, Ref: app, Received: time.Now()})
		}
		change()
		q.Get()
		q.Done(key)
		l.state.Changes.Attempt(key)
		l.state.Changes.Waits(key, 5*time.Second)
		change()
		assert.Zero(t, q.Len())
		<-time.After(5*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, q.Len())
	})
}
