package inflight_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
)

// BenchmarkLeave is what it takes to give the slot of a write to one of 10,000 namespaces that wait.
func BenchmarkLeave(b *testing.B) {
	for name, class := range map[string]inflight.Class{"urgent": inflight.Urgent, "retry": inflight.Retry} {
		b.Run(name, func(b *testing.B) {
			var granted []string
			l := inflight.New(inflight.Options{Soon: time.Hour}, func(key string) { granted = append(granted, key) })
			enter := func(name string) {
				if l.Enter(name, name, class) {
					granted = append(granted, name)
				} else {
					l.Leave(name) // it waits
				}
			}
			for i := range 10_000 {
				enter(fmt.Sprint(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				name := granted[0]
				granted = granted[1:]
				l.Leave(name)
				enter(name)
			}
		})
	}
}
