package pattern

import (
	"strconv"
	"testing"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// BenchmarkDelete is what it takes to delete 10,000 workloads of a namespace that share a pattern.
func BenchmarkDelete(b *testing.B) {
	all := uses(b, reference.ConfigMap, ".*")
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		x := NewIndex[string](existing{}.names)
		for i := range 10_000 {
			x.Set("web-"+strconv.Itoa(i), "shop", all)
		}
		b.StartTimer()
		for i := range 10_000 {
			x.Delete("web-"+strconv.Itoa(i), "shop")
		}
	}
}

// BenchmarkSetUnchanged is what it takes to enter a workload once more that has the same patterns as before, in a namespace with 100,000
// patterns.
func BenchmarkSetUnchanged(b *testing.B) {
	x := NewIndex[string](existing{}.names)
	x.memory = 1 << 30
	for i := range 1000 {
		var texts []string
		for j := range 100 {
			texts = append(texts, strconv.Itoa(i)+"-"+strconv.Itoa(j)+".*")
		}
		x.Set(strconv.Itoa(i), "shop", uses(b, reference.ConfigMap, texts...))
	}
	one := uses(b, reference.ConfigMap, "web.*")
	x.Set("web", "shop", one)
	b.ReportAllocs()
	for b.Loop() {
		x.Set("web", "shop", one)
	}
}
