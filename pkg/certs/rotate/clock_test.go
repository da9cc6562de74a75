package rotate

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dated answers with a time.
type dated struct{ time.Time }

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Date": {d.UTC().Format(http.TimeFormat)}}, Body: http.NoBody}, nil
}

// The Date of an answer has whole seconds, and answers take time.
func TestClockThatDiffersLittleIsLeftAlone(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]time.Duration{
		0: 0, time.Second: 0, 5 * time.Second: 0, 6 * time.Second: 6 * time.Second, -5 * time.Second: 0, -6 * time.Second: -6 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &clock{next: dated{time.Now().Add(ahead)}}
			_, err := c.RoundTrip(nil) //nolint:bodyclose // there is none
			require.NoError(t, err)
			assert.Equal(t, time.Now().Add(want), c.now(), ahead)
		})
	}
}
