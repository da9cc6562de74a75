package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// condition is something without which the replica is not ready; check says what is missing, or nil.
type condition struct {
	name  string
	check func() error
}

// probes answer /healthz, /live (its name in Reloader) and /readyz. Alive is a process that answers. Ready is one that can stamp: it has a digest key
// and a valid certificate, and is not about to stop. Caches are no part of it, the webhook reads live.
type probes struct {
	stopping   atomic.Bool
	conditions []condition
	log        logr.Logger

	mu   sync.Mutex
	last string // the last answer that was logged
}

var errStopping = errors.New("the program is stopping")

func (p *probes) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/live"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	}
	mux.HandleFunc("/readyz", p.readyz)
	return mux
}

// readyz answers 200 or 503, with a line for each condition that says what is missing.
func (p *probes) readyz(w http.ResponseWriter, _ *http.Request) {
	var lines, missing []string
	for _, c := range append([]condition{{"running", p.running}}, p.conditions...) {
		if err := c.check(); err != nil {
			lines = append(lines, fmt.Sprintf("[-] %s: %v", c.name, err))
			missing = append(missing, err.Error())
		} else {
			lines = append(lines, "[+] "+c.name)
		}
	}
	slices.Sort(lines)
	p.logReadiness(strings.Join(missing, "; "))
	if len(missing) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// logReadiness logs when readiness changes, and why; not at every probe.
func (p *probes) logReadiness(missing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := cmp.Or(missing, "ready"); now != p.last {
		p.last = now
		p.log.Info("readiness changed", "ready", missing == "", "missing", missing)
	}
}

func (p *probes) running() error {
	if p.stopping.Load() {
		return errStopping
	}
	return nil
}
