package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Not parallel: the youngest bubble of the process is judged.
func TestGoroutinesThatAreLeftBehindAreFound(t *testing.T) {
	assert.Empty(t, inBubble(t, func(*testing.T) {}))

	left := inBubble(t, func(*testing.T) {
		go func() { <-make(chan int) }()
	})
	require.Len(t, left, 1)
	assert.Contains(t, left[0], "TestGoroutinesThatAreLeftBehindAreFound")

	assert.Empty(t, inBubble(t, func(*testing.T) {
		source := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
		watch.Filter(source, func(in watch.Event) (watch.Event, bool) { return in, true })
		source.Add(&metav1.Status{})
	}), "the library leaves its goroutine behind")
}
