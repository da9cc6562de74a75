package rotate

import (
	"net/http"
	"sync/atomic"
	"time"
)

// tolerated is by how much the clock of this process may differ from that of the API server: the Date of an answer has whole seconds, and
// answers take time.
const tolerated = 5 * time.Second

// clock is that of the API server, by the Date of its answers. It verifies the certificates, and all replicas must agree on the
// time: otherwise one whose clock is wrong would replace what the others have made, and they again.
type clock struct {
	next http.RoundTripper
	// ahead is by how much the API server's clock is ahead of that of this process, in nanoseconds.
	ahead atomic.Int64
}

// RoundTrip passes a request on, and looks at the time of the answer.
func (c *clock) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		ahead := time.Until(date)
		if ahead.Abs() <= tolerated {
			ahead = 0
		}
		c.ahead.Store(int64(ahead))
	}
	return answer, nil
}

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
