package oracle

import (
	"testing"
	"time"
)

func TestExplainedByNotes(t *testing.T) {
	t.Parallel()
	// noted is a reload because of app, and an Event with a text.
	noted := func(note string) func(s *harness) {
		return func(s *harness) {
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.reportReloadWith(cart, note)
			s.rollout(cart)
		}
	}
	runLaw(t, "explained", map[string]lawCase{
		"names the cause": {because: "app has changed", happens: func(s *harness) {
			noted("pod template updated: configmap/app modified")(s)
			s.quiet()
		}},
		"names no cause": {want: "explained/note", because: "app has changed", happens: func(s *harness) {
			noted("pod template updated")(s)
			s.quiet()
		}},
		"names another object": {want: "explained/note", because: "extra has not changed", happens: func(s *harness) {
			noted("pod template updated: configmap/extra modified")(s)
			s.quiet()
		}},
		"names the cause of an earlier reload": {
			because: "which reload an Event reports is not known",
			happens: func(s *harness) {
				noted("pod template updated: configmap/app modified")(s)
				s.set(configMap("extra"), "2")
				s.wait(10 * time.Second)
				s.reloadSilently(cart, "c", "configmap/extra modified")
				s.reportReloadWith(cart, "pod template updated: configmap/app modified")
				s.rollout(cart)
				s.quiet()
			},
		},
		"names no cause, written by a later leader": {
			because: "of an earlier reload, it knows no changes",
			happens: func(s *harness) {
				s.oracle.Leader(replica, s.now)
				s.beginWithChange()
				s.reloadSilently(cart, "b", "configmap/app modified")
				s.oracle.Leader("replica-1.1", s.now)
				s.reportReloadWith(cart, "pod template updated: its configuration has changed")
				s.rollout(cart)
				s.quiet()
			},
		},
		"names another object, written by a later leader": {
			want: "explained/note", because: "it is no cause",
			happens: func(s *harness) {
				s.oracle.Leader(replica, s.now)
				s.beginWithChange()
				s.reloadSilently(cart, "b", "configmap/app modified")
				s.oracle.Leader("replica-1.1", s.now)
				s.reportReloadWith(cart, "pod template updated: configmap/extra modified")
				s.rollout(cart)
				s.quiet()
			},
		},
		"names no cause, two reloads while nothing was seen": {
			because: "of the first one, only the time is in the annotation of the second",
			happens: func(s *harness) {
				s.beginWithChange()
				s.oracle.Fault(Fault{At: s.now, Kind: "watch-held", Begin: true})
				s.reloadSilently(cart, "b", "configmap/app modified")
				s.rollout(cart)
				s.set(configMap("app"), "3")
				s.wait(20 * time.Second)
				s.reloadSilently(cart, "c", "configmap/app modified")
				s.rollout(cart)
				s.oracle.Fault(Fault{At: s.now, Kind: "watch-held"})
				s.reportReloadWith(cart, "pod template updated, together with a release")
				s.reportReload(cart)
				s.wait(time.Minute)
				s.quiet()
			},
		},
		"names what has no annotation": {because: "there was no space for the changes", happens: func(s *harness) {
			reloadUnannotated(s)
			s.quiet()
		}},
	})
}
