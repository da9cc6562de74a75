package watchhealth_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// Jobs are listed for a CronJob while they are watched.
func TestListOfItsOwnDoesNotCountForAWatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		apart   bool
		healthy bool
	}{"of its own": {apart: true, healthy: true}, "of the watch": {}} {
		c := newClient(t)
		send := func(ctx context.Context, url string) {
			response, err := c.send(ctx, url, status(http.StatusOK))
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		send(t.Context(), watch)
		ctx := t.Context()
		if tc.apart {
			ctx = watchhealth.Unwatched(ctx)
		}
		for range 2 {
			send(ctx, "/api/v1/secrets")
		}
		statuses := c.monitor.Statuses()
		require.Len(t, statuses, 1, name)
		assert.Equal(t, tc.healthy, statuses[0].Healthy(), name)
	}
}
