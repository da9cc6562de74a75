package cluster_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRollout rolls a Deployment of four pods among 20 others. The simulator's budget is some 20 µs a pass.
func BenchmarkRollout(b *testing.B) {
	store := newMemory()
	k := newKit(&testing.T{}, store)
	for i := range 20 {
		manifest := workload("Deployment", "cart:1")
		k.apply(strings.ReplaceAll(manifest, "cart}", fmt.Sprintf("cart%d}", i)))
	}
	cart := k.apply(workload("Deployment", "cart:1"))
	k.settle()
	k.passes = 0
	writes := store.writes
	b.ResetTimer()
	for i := range b.N {
		k.image(cart, fmt.Sprintf("cart:%d", i+2))
		k.settle()
	}
	b.ReportMetric(float64(k.passes)/float64(b.N), "passes/op")
	b.ReportMetric(float64(store.writes-writes)/float64(b.N), "writes/op")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(k.passes), "µs/pass")
}
