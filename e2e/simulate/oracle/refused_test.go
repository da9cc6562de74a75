package oracle

import (
	"net/http"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	refuse := func(s *harness, key world.Key, status int, body string) {
		call := s.call(replica, "patch", key, []byte(body))
		if key.Name == "" {
			call.Verb = "create"
		}
		s.oracle.Request(call)
		s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: status})
	}
	refused := func(n int, every time.Duration, status int) func(*harness) {
		return func(s *harness) {
			s.begin()
			for range n {
				refuse(s, cart, status, "{}")
				s.wait(every)
			}
		}
	}
	between := func(do func(s *harness)) func(*harness) {
		return func(s *harness) {
			s.begin()
			for range 30 {
				refuse(s, cart, http.StatusForbidden, "{}")
				do(s)
				s.wait(time.Second)
			}
		}
	}
	created := func(names ...string) func(*harness) {
		return func(s *harness) {
			s.begin()
			for i := range 30 {
				refuse(s, world.Key{Resource: world.Jobs, Namespace: "shop"}, http.StatusForbidden, `{"metadata":{"name":"`+names[i%len(names)]+`"}}`)
				s.wait(time.Second)
			}
		}
	}
	runLaw(t, "hot-loop", map[string]lawCase{
		"without a permission, every 400 ms": {
			want: "hot-loop/refused", because: "the pauses grow",
			happens: refused(20, 400*time.Millisecond, http.StatusForbidden),
		},
		"without a permission, every 3 s": {
			because: "that is the pause while objects change",
			happens: refused(20, 3*time.Second, http.StatusForbidden),
		},
		"API server is away, every 200 ms": {
			want: "hot-loop/refused", because: "the pauses grow",
			happens: refused(20, 200*time.Millisecond, http.StatusServiceUnavailable),
		},
		"API server is away, some attempts": {
			because: "the first pauses are short",
			happens: refused(12, 50*time.Millisecond, http.StatusServiceUnavailable),
		},
		"end of a pause and a reload, each every 3 s": {
			because: "each has its own pauses", happens: func(s *harness) {
				s.begin()
				for range 20 {
					refuse(s, cart, http.StatusForbidden, `{"metadata":{"annotations":{"`+pausedAt+`":null}}}`)
					refuse(s, cart, http.StatusForbidden, "{}")
					s.wait(3 * time.Second)
				}
			},
		},
		"end of a pause, every second": {
			want: "hot-loop/refused", because: "the pauses grow", happens: func(s *harness) {
				s.begin()
				for range 20 {
					refuse(s, cart, http.StatusForbidden, `{"metadata":{"annotations":{"`+pausedAt+`":null}}}`)
					s.wait(time.Second)
				}
			},
		},
		"too many requests, every second": {
			want: "hot-loop/refused", because: "the pauses grow, whatever its Retry-After is",
			happens: refused(30, time.Second, http.StatusTooManyRequests),
		},
		"without a permission, and half of the answers are lost": {
			because: "what gets no answer may pass by itself", happens: func(s *harness) {
				s.begin()
				for n := range 12 {
					call := s.call(replica, "patch", cart, []byte("{}"))
					s.oracle.Request(call)
					s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: http.StatusForbidden, Lost: n%2 == 0})
					s.wait(time.Second)
				}
			},
		},
		"conflicts": {
			because: "under constant change there are many",
			happens: refused(20, 400*time.Millisecond, http.StatusConflict),
		},
		"written in between": {because: "the pauses begin again", happens: between(func(s *harness) {
			s.request(replica, "patch", cart, []byte("{}"))
		})},
		"written by a user in between": {because: "that may be what was refused", happens: between(func(s *harness) {
			s.edit(cart, func(o world.Object) { setAnnotation(o, "example.com/note", s.now.String()) })
		})},
		"another one written in between": {
			want: "hot-loop/refused", because: "it is not about this one",
			happens: between(func(s *harness) { s.request(replica, "patch", configMap("extra"), []byte("{}")) }),
		},
		"a Job":     {want: "hot-loop/refused", because: "it is created every second", happens: created("import")},
		"many Jobs": {because: "each has its own pauses", happens: created("a", "b", "c", "d", "e")},
		"leases": {because: "its period is fixed", happens: func(s *harness) {
			for range 30 {
				refuse(s, world.Key{Resource: world.Leases, Namespace: "pod-reloader", Name: "lease"}, http.StatusForbidden, "{}")
				s.wait(time.Second)
			}
		}},
	})
}
