package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// slowAfter is how long a request of the program may take before it counts as a disturbance of its own.
const slowAfter = 300 * time.Millisecond

// slowness has the program's requests that took long, by namespace. A network that is slow now and then is no fault of the
// list, but the webhook may miss its deadline and the loop may be late.
type slowness struct {
	running []*world.Call
	// until is when the last slow request of a namespace ended.
	until map[string]time.Time
}

func isPrompt(call *world.Call) bool {
	return call.Verb != "watch" && call.Verb != "list" && call.Key.Namespace != "" && call.Key.Resource.Plural != "leases"
}

func (s *slowness) begin(call *world.Call) {
	if isPrompt(call) {
		s.running = slices.DeleteFunc(s.running, func(old *world.Call) bool { return call.Arrived.Sub(old.Arrived) > recovery })
		s.running = append(s.running, call)
	}
}

func (s *slowness) end(r world.Reply) {
	if !isPrompt(r.Call) {
		return
	}
	s.running = slices.DeleteFunc(s.running, func(call *world.Call) bool { return call == r.Call })
	if r.At.Sub(r.Call.Arrived) < slowAfter {
		return
	}
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[r.Call.Key.Namespace] = r.At
}

// during reports whether a slow request in a namespace was under way in a time that ends now.
func (s *slowness) during(namespace string, from, now time.Time) bool {
	if !s.until[namespace].Before(from) && !s.until[namespace].IsZero() {
		return true
	}
	for _, call := range s.running {
		if call.Key.Namespace == namespace && now.Sub(call.Arrived) >= slowAfter {
			return true
		}
	}
	return false
}

// last returns when the last slow request of a namespace ended.
func (s *slowness) last(namespace string) time.Time { return s.until[namespace] }
