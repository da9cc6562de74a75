package alert

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers is a transport that answers with a status, at once.
type answers struct {
	status int
	after  string
	count  int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.count++
	return &http.Response{StatusCode: a.status, Header: http.Header{"Retry-After": {a.after}}, Body: http.NoBody}, nil
}

func TestRetriesBackOffAndEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after string
		want  time.Duration
	}{
		"doubling":     {"", 7 * time.Second},
		"as asked":     {"10", 30 * time.Second},
		"at most so":   {"86400", 3 * longestWait},
		"a date is no": {"Wed, 21 Oct 2026 07:28:00 GMT", 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &answers{status: http.StatusBadGateway, after: tc.after}
				began := time.Now()
				o, err := poster{client: &http.Client{Transport: a}, url: "http://chat.example"}.post(t.Context(), nil)
				require.ErrorContains(t, err, "after 4 attempts: the sink answered 502 Bad Gateway")
				assert.Equal(t, failed, o)
				assert.Equal(t, attempts, a.count)
				assert.Equal(t, tc.want, time.Since(began))
			})
		})
	}
}
