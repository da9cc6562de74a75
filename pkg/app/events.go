package app

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// eventsGiveWay is how long an Event gives way to other requests: reloads come first, their Events right after. How many
// Events are written at a time is decided by package outbox.
const eventsGiveWay = time.Second

// eventsPath is where the API has Events.
const eventsPath = "/apis/events.k8s.io/"

// paced is a transport in which Events wait for everything else, and nothing else for them.
type paced struct {
	next http.RoundTripper

	mu sync.Mutex
	// busy counts the other requests that have no answer yet; quiet is closed while there is none.
	busy  int
	quiet chan struct{}
}

// paceEvents is for rest.Config.Wrap.
func paceEvents(next http.RoundTripper) http.RoundTripper {
	quiet := make(chan struct{})
	close(quiet)
	return &paced{next: next, quiet: quiet}
}

// RoundTrip sends a request, one for Events when nothing else is under way.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, eventsPath) {
		p.begin()
		defer p.end()
		return p.next.RoundTrip(r)
	}
	patience := time.NewTimer(eventsGiveWay)
	defer patience.Stop()
	select {
	case <-p.idle():
	case <-patience.C:
	case <-r.Context().Done():
		return nil, abandon(r)
	}
	return p.next.RoundTrip(r)
}

func (p *paced) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == 0 {
		p.quiet = make(chan struct{})
	}
	p.busy++
}

func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy == 0 {
		close(p.quiet)
	}
}

// idle returns a channel that is closed when all other requests of now have their answers.
func (p *paced) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet
}

// abandon gives a request up, and closes its body as every transport does, whatever becomes of the request.
func abandon(r *http.Request) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return r.Context().Err()
}

// WrappedRoundTripper lets client-go find the transport below.
func (p *paced) WrappedRoundTripper() http.RoundTripper { return p.next }
