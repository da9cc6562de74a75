package apiserver

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// Withdraw has the Server serve a custom resource no more, and ends its watches. Its objects stay: the definition may be back with them, as
// one whose version is served again. In discovery it is where one API server of several does not have the definition.
func (s *Server) Withdraw(r world.Resource, discovered bool) {
	k, err := s.kindOf(r)
	if err != nil || !k.custom {
		return
	}
	s.withdrawn.Store(k, discovered)
	for _, w := range s.Watches() {
		if w.request.kind == k {
			w.Close()
		}
	}
}

// Serve has the Server serve a custom resource again.
func (s *Server) Serve(r world.Resource) {
	if k, err := s.kindOf(r); err == nil {
		s.withdrawn.Delete(k)
	}
}

// isServed reports whether requests for a kind are served.
func (s *Server) isServed(k *kind) bool {
	_, withdrawn := s.withdrawn.Load(k)
	return !withdrawn
}

// discovered returns the kinds that discovery shows.
func (s *Server) discovered() []*kind {
	var all []*kind
	for _, k := range s.kinds {
		if discovered, withdrawn := s.withdrawn.Load(k); !withdrawn || discovered == true {
			all = append(all, k)
		}
	}
	return all
}
