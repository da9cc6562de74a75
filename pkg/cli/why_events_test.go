package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventPages are Events that are listed in pages, as the API server does it.
type eventPages struct {
	client.Reader
	t     *testing.T
	items []eventsv1.Event
	pages int
}

func (p *eventPages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	require.Positive(p.t, o.Limit, "all Events at once")
	require.LessOrEqual(p.t, o.Limit, int64(20), "a page of large Events")
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+int(o.Limit), len(p.items))
	events := list.(*eventsv1.EventList)
	require.Empty(p.t, events.Continue, "a list that was used before")
	events.Items = p.items[from:to:to]
	if p.pages++; to < len(p.items) {
		events.Continue = strconv.Itoa(to)
	}
	return nil
}

func TestEventsOfAWorkloadAreListedInPages(t *testing.T) {
	t.Parallel()
	p := &eventPages{t: t}
	for n := range 70 {
		e := said("web", fmt.Sprintf("Reason%d", n%60), n)
		e.Note = fmt.Sprintf("%d%s", n, strings.Repeat("x", 100<<10))
		p.items = append(p.items, e)
	}
	p.items[65].Reason = strings.Repeat("y", 100<<10)
	all, err := warnings(t.Context(), p, eventsOf{namespace: "shop"})
	require.NoError(t, err)
	assert.Equal(t, 4, p.pages)
	found := all[""]
	require.Len(t, found, 50, "there are 61 reasons")
	for n, w := range found {
		assert.True(t, strings.HasPrefix(w.Message, strconv.Itoa(69-n)+"x"), "the newest ones: %.10s", w.Message)
		assert.Less(t, len(w.Message)+len(w.Reason), 2200)
	}
	seen := map[string]bool{}
	for _, w := range found {
		assert.False(t, seen[w.Reason], w.Reason)
		seen[w.Reason] = true
	}
}

func TestWatchesThatFailAreFoundOnALaterPage(t *testing.T) {
	t.Parallel()
	p := &eventPages{t: t}
	for n := range 30 {
		p.items = append(p.items, said("a", "ScalingReplicaSet", n))
	}
	p.items[2] = said("a", "WatchFailing", 2)
	p.items[25] = said("b", "WatchFailing", 1)
	got, err := watchFailure(t.Context(), p, "pod-reloader")
	require.NoError(t, err)
	require.NotNil(t, got)
	assert.Equal(t, "WatchFailing 2", got.Message)
	p.items[29] = said("a", "WatchRecovered", 29)
	got, err = watchFailure(t.Context(), p, "pod-reloader")
	require.NoError(t, err)
	require.NotNil(t, got)
	assert.Equal(t, "WatchFailing 1", got.Message, "that of the other installation")
}

func TestWarningsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	_, err := warnings(t.Context(), eventLister{err: errors.New("forbidden")}, eventsOf{})
	require.EqualError(t, err, "cannot show failed attempts, since the Events cannot be listed: forbidden")
	found, err := warnings(t.Context(), eventLister{}, eventsOf{})
	require.NoError(t, err)
	assert.Empty(t, found)
}
