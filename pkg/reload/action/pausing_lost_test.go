package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

func TestEndOfAPauseIsReportedAfterALostAnswer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	begun := now.Add(-time.Minute).Format(time.RFC3339)
	for name, tc := range map[string]struct {
		err    error
		paused bool
		since  string
		want   int
	}{
		"the end is stored":            {err: errors.New("the connection is lost"), want: 1},
		"the end was refused":          {err: apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", nil)},
		"a user pauses it from now on": {err: errors.New("the connection is lost"), paused: true},
		"another pause has begun":      {err: errors.New("the connection is lost"), paused: true, since: now.Format(time.RFC3339)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			actions := newActions(Options{
				Client: &patched{err: tc.err}, PausedAt: pausedAt,
				Gather: gather.Gatherer{Reader: reloadtest.Reader(), Now: func() time.Time { return now }},
			}, out)
			s := pausedDeployment(t, 30*time.Second, true, begun)
			_, ended := actions.EndPause(t.Context(), s)
			if ended != nil {
				actions.Close(t.Context(), ended)
			}
			out.Messages = nil
			for range 2 {
				actions.EndPause(t.Context(), pausedDeployment(t, 30*time.Second, tc.paused, tc.since))
			}
			assert.Len(t, out.Messages, tc.want)
			for _, m := range out.Messages {
				assert.Equal(t, "Resumed", m.Event.Reason)
				assert.Contains(t, m.Event.Note, begun)
			}
		})
	}
}
