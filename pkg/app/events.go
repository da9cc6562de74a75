package app

import (
	"net/http"
	"strings"
)

// eventsUnderWay is how many Events are written at a time. client-go starts a request for each one at once: a change that
// reloads hundreds of workloads would put as many requests between the last of its reloads, and open connections for them.
const eventsUnderWay = 2

// eventsPath is where the API has Events.
const eventsPath = "/apis/events.k8s.io/"

// paced is a transport in which Events wait for each other, and nothing else for them.
type paced struct {
	next  http.RoundTripper
	slots chan struct{}
}

// paceEvents is for rest.Config.Wrap.
func paceEvents(next http.RoundTripper) http.RoundTripper {
	return &paced{next: next, slots: make(chan struct{}, eventsUnderWay)}
}

// RoundTrip sends a request, an Event as soon as there is a slot.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, eventsPath) {
		return p.next.RoundTrip(r)
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
		return p.next.RoundTrip(r)
	case <-r.Context().Done():
		if r.Body != nil {
			_ = r.Body.Close() // as every transport does, whatever becomes of the request
		}
		return nil, r.Context().Err()
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (p *paced) WrappedRoundTripper() http.RoundTripper { return p.next }
