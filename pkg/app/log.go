package app

import (
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// httpErrorLog takes what net/http writes to the standard logger, such as failed handshakes: clients that do not trust us
// are worth a line, the noise of port scans is not.
// Any pod can refuse our certificate as often as it likes: after the first, one a minute is logged.
type httpErrorLog struct {
	to      logr.Logger
	trusted rate.Sometimes
}

func newHTTPErrorLog(to logr.Logger) *httpErrorLog {
	return &httpErrorLog{to: to, trusted: rate.Sometimes{First: 10, Interval: time.Minute}}
}

// Write takes one line.
func (c *httpErrorLog) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	switch {
	case strings.Contains(text, "panic"):
		c.to.Info("the HTTP server reported an error", "error", text)
	case strings.Contains(text, "certificate"):
		c.trusted.Do(func() { c.to.Info("the HTTP server reported an error", "error", text) })
	default:
		c.to.V(1).Info("the HTTP server reported an error", "error", text)
	}
	return len(p), nil
}
