package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func published(namespace string) func(*pending) {
	return func(p *pending) { p.published = append(p.published, batchEnd{namespace: namespace}) }
}

func namespacesOf(batches []batchEnd) (names []string) {
	for _, batch := range batches {
		names = append(names, batch.namespace)
	}
	return names
}

func TestGatheredEventsWaitForDebounce(t *testing.T) {
	t.Parallel()
	in := newInbox(time.Second)
	in.gather(published("gathered"))
	in.arrive(published("arrived"))

	first := in.take(false)
	assert.Equal(t, []string{"arrived"}, namespacesOf(first.published), "what has arrived does not wait")
	assert.False(t, first.gathered, "the debounce time is not over")

	in.arrive(published("later"))
	second := in.take(true)
	assert.Equal(t, []string{"later", "gathered"}, namespacesOf(second.published), "what has arrived comes first: a change began it earlier")
	assert.True(t, second.gathered, "the debounce time is over")

	assert.Empty(t, in.take(true).published, "all is taken once")
}

func TestConfigObjectsAreTakenBeforeTheRest(t *testing.T) {
	t.Parallel()
	in := newInbox(time.Second)
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	in.gather(func(p *pending) {
		p.changed("ns", app)
		p.removed = []again{{keys: []referent.Key{{Namespace: "ns", Name: "removed"}}}}
	})

	assert.Equal(t, map[configKey]struct{}{{"ns", app}: {}}, in.takeConfig())
	left := in.take(true)
	assert.Empty(t, left.config, "config objects are read once")
	assert.Len(t, left.removed, 1, "what else has gathered must not get lost")
}

func TestQuestionEndsTheDebounce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, start := newInbox(time.Hour), time.Now()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			in.applyPending(t.Context())
		}()
		asked := in.wait(t.Context(), nil)
		require.NotNil(t, asked, "the wait must end with the question")
		close(asked)
		<-answered
		assert.Zero(t, time.Since(start))
	})
}

func TestQuestionDoesNotWaitLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		newInbox(time.Second).applyPending(t.Context()) // no goroutine owns the graph yet
		assert.Equal(t, applyPendingLimit, time.Since(start))
	})
}
