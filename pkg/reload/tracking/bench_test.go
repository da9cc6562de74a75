package tracking

import (
	"strconv"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// BenchmarkConfigChanged is what each event of an object takes that changes all the time, while the 10,000 workloads that track it settle.
func BenchmarkConfigChanged(b *testing.B) {
	app, now := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, time.Now()
	all, err := pattern.Compile(".*")
	if err != nil {
		b.Fatal(err)
	}
	for name, enter := range map[string]func(t *Tracking, key workload.Key){
		"named": func(t *Tracking, key workload.Key) { t.index.SetRefs(key, []reference.Ref{app}) },
		"matched": func(t *Tracking, key workload.Key) {
			t.index.SetRefs(key, nil)
			t.with.Patterns.Set(key, key.Namespace, []pattern.Use{{Kind: reference.ConfigMap, Pattern: all}})
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := standby(Options{Patterns: pattern.NewIndex[workload.Key](func(string, reference.Kind) []string { return []string{"app"} })})
			q := reloadtest.Open(b, l.queue)
			l.leads.Begin(now)
			for i := range 10_000 {
				enter(l.tracking, workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "web-" + strconv.Itoa(i)})
			}
			changed := configstate.Event{Namespace: "shop", Ref: app, Received: now}
			l.tracking.ConfigChanged(changed)
			for q.Len() > 0 {
				key, _ := q.Get()
				l.state.Changes.BeginAttempt(key)
				l.state.Changes.WaitToSettle(key, now.Add(time.Hour))
				q.Done(key)
			}
			b.ReportAllocs()
			for b.Loop() {
				l.tracking.ConfigChanged(changed)
			}
			if q.Len() > 0 {
				b.Fatal("workloads that settle are queued")
			}
		})
	}
}
