package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The program may not have heard of a change when it makes a Job, and the Job may be stored late: the change is another run.
func TestRunOfACronJobThatIsStoredLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, between bool
		// late is how long before the Job the change is, and stops what happens at that time; slow, that a request takes so long.
		late  time.Duration
		stops string
		slow  bool
		want  string
	}{
		"just changed": {before: true}, "changed in between": {between: true}, "not changed": {want: "jobs/run/twice"},
		"changed while frozen":                  {before: true, late: 4 * time.Second, stops: replica},
		"changed while another one is frozen":   {before: true, late: 4 * time.Second, stops: "replica-1", want: "jobs/run/twice"},
		"changed during a slow read":            {before: true, late: 4 * time.Second, slow: true},
		"changed some time before":              {before: true, late: 4 * time.Second, want: "jobs/run/twice"},
		"frozen, changed some time before that": {stops: replica, late: 4 * time.Second, want: "jobs/run/twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{})
			s.beginCronJob()
			template := world.TemplatePath(nightly.Resource.Plural)
			if tt.stops != "" {
				s.oracle.Fault(Fault{At: s.now, Kind: "frozen", Scope: tt.stops, Begin: true})
			}
			read := s.call(replica, "get", nightly, nil)
			if tt.slow {
				s.oracle.Request(read)
			}
			if tt.before {
				s.set(configMap("app"), "3")
			}
			s.wait(tt.late)
			if tt.slow {
				s.oracle.Reply(world.Reply{Call: read, At: s.now, Status: 200})
			}
			if tt.stops != "" {
				s.oracle.Fault(Fault{At: s.now, Kind: "frozen", Scope: tt.stops})
			}
			first := importJob
			first.Name = "n1"
			ran := s.call(replica, "create", first, nil)
			s.oracle.Request(ran)
			if tt.between {
				s.set(configMap("app"), "3")
			}
			s.change(ran, first, nil, jobNamed("uid-n1", isRun))
			stamped := s.call(replica, "patch", nightly, []byte(`{}`))
			s.oracle.Request(stamped)
			s.change(stamped, nightly, s.objects[nightly], edited(s.objects[nightly], func(o world.Object) {
				setAnnotation(world.Section(o, template...), prefix+requestAnnotation, "b")
				setAnnotation(o, prefix+reloadAnnotation, s.lastReloadOfApp())
			}))
			for _, call := range []*world.Call{ran, stamped} {
				s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
			}
			s.wait(time.Minute)
			s.runs("n2")
			s.expectOnly("jobs", tt.want, "each change is one run")
		})
	}
}
