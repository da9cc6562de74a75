package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// readMetadata is a read of the metadata of an object only.
func (s *harness) readMetadata(client string, key world.Key) {
	call := s.call(client, "get", key, nil)
	call.Partial = true
	s.oracle.Request(call)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

// reviewed is a user's write of cart for which the webhook is called some times, and reads.
func (s *harness) reviewed(calls int, reads func()) {
	call := s.call(user, "patch", cart, nil)
	s.oracle.Request(call)
	reads()
	sent := edited(s.objects[cart], func(o world.Object) {
		world.Section(o, "spec", "template", "spec")["hostname"] = s.now.Format("150405")
	})
	s.change(call, cart, sent, sent)
	called := append(slices.Repeat([]string{s.oracle.options.WebhookName}, calls), "other")
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Called: called})
}

const standby = "replica-1.1"

func TestReadsOfContents(t *testing.T) {
	t.Parallel()
	app := configMap("app")
	read := func(s *harness, client string) { s.request(client, "get", app, nil) }
	twice := func(between func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.begin()
			read(s, replica)
			between(s)
			s.wait(time.Minute)
			read(s, replica)
		}
	}
	runLaw(t, "cost", map[string]lawCase{
		"again":                        {want: "cost/content-again", because: "its replica knows this version", happens: twice(func(*harness) {})},
		"again in direct mode":         {options: Options{Direct: true}, want: "cost/content-again", because: "its replica knows this version", happens: twice(func(*harness) {})},
		"a new version":                {because: "another content", happens: twice(func(s *harness) { s.set(app, "2"); s.set(app, "1") })},
		"the same content, re-written": {because: "another version", happens: twice(func(s *harness) { s.set(app, "1") })},
		"another key": {because: "Entries are made under the new key", happens: twice(func(s *harness) {
			s.write(user, "update", s.oracle.options.KeySecret, world.Object{"data": world.Object{"a": "a", "b": "b"}})
		})},
		"an answer that was lost": {because: "nothing was read", happens: func(s *harness) {
			s.begin()
			call := s.call(replica, "get", app, nil)
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Lost: true})
			read(s, replica)
		}},
		"written meanwhile": {because: "it is not known which version was read", happens: func(s *harness) {
			s.begin()
			call := s.call(replica, "get", app, nil)
			s.oracle.Request(call)
			s.set(app, "2")
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
			s.set(app, "1")
			s.wait(time.Second)
			read(s, replica)
		}},
		"before the watch": {because: "the replica has seen an older version only", happens: func(s *harness) {
			s.begin()
			s.set(app, "2")
			read(s, replica)
			s.wait(time.Second)
			read(s, replica)
			s.set(app, "1")
		}},
		"just after a fault": {because: "the answer may not have arrived", happens: func(s *harness) {
			s.begin()
			read(s, replica)
			s.wait(time.Minute)
			s.fault("api-errors", "", time.Second)
			read(s, replica)
		}},
		"by a standby": {want: "cost/unasked", because: "its webhook was not called", happens: func(s *harness) {
			s.begin()
			read(s, standby)
		}},
		"by a standby that was frozen": {because: "it has missed a bookmark", happens: func(s *harness) {
			s.begin()
			s.fault("frozen", standby, time.Minute)
			s.wait(75 * time.Second)
			read(s, standby)
		}},
		"by a standby that answers": {because: "it does not know the content", happens: func(s *harness) {
			s.begin()
			s.reviewed(1, func() { read(s, standby) })
		}},
		"by a standby in direct mode": {options: Options{Direct: true}, because: "nothing says who leads", happens: func(s *harness) {
			s.begin()
			read(s, standby)
		}},
		"missing": {because: "it is looked for again", happens: func(s *harness) {
			s.begin()
			s.request(standby, "get", configMap("x"), nil)
			s.request(standby, "get", configMap("x"), nil)
		}},
	})
}

func TestReadsOfMetadata(t *testing.T) {
	t.Parallel()
	app, extra := configMap("app"), configMap("extra")
	runLaw(t, "cost", map[string]lawCase{
		"each once": {because: "one for each object", happens: func(s *harness) {
			s.begin()
			s.reviewed(1, func() { s.readMetadata(replica, app); s.readMetadata(replica, extra) })
		}},
		"one twice": {want: "cost/metadata", because: "one is enough", happens: func(s *harness) {
			s.begin()
			s.reviewed(1, func() { s.readMetadata(replica, app); s.readMetadata(replica, app) })
		}},
		"one by each of two": {want: "cost/metadata", because: "only one of them is called", happens: func(s *harness) {
			s.begin()
			s.reviewed(1, func() { s.readMetadata(replica, app); s.readMetadata(standby, app) })
		}},
		"called twice": {because: "another webhook has changed it in between", happens: func(s *harness) {
			s.begin()
			s.reviewed(2, func() { s.readMetadata(replica, app); s.readMetadata(replica, app) })
		}},
		"for two at once": {because: "nothing says for which one", happens: func(s *harness) {
			s.begin()
			other := s.call(user, "patch", cart, nil)
			s.oracle.Request(other)
			s.reviewed(1, func() { s.readMetadata(replica, app); s.readMetadata(replica, app) })
		}},
		"for none": {want: "cost/unasked", because: "the watch shows it", happens: func(s *harness) {
			s.begin()
			s.readMetadata(replica, app)
		}},
		"after a watch was held back": {because: "it has missed a bookmark", happens: func(s *harness) {
			s.begin()
			s.fault("watch-held", "configmaps", 12*time.Second)
			s.wait(90 * time.Second)
			s.readMetadata(replica, app)
		}},
		"long after a watch was held back": {want: "cost/unasked", because: "it is healthy again", happens: func(s *harness) {
			s.begin()
			s.fault("watch-held", "configmaps", 12*time.Second)
			s.wait(10 * time.Minute)
			s.readMetadata(replica, app)
		}},
		"while a watch fails": {because: "the tracked objects are read periodically", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: "configmaps", Begin: true})
			s.readMetadata(replica, app)
		}},
	})
}
