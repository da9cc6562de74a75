package referent_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// wide is a graph of 10,000 nodes over 4 levels: 227 proxies with 11 clusters, each with a service, a filter
// and a Secret of its own, and a filter that all share.
func wide(b *testing.B) world {
	b.Helper()
	w := newWorld(b, kafka()...)
	w.set("filters/shared", map[string]any{"type": "x"})
	const proxies, clusters = 227, 11
	for p := range proxies {
		w.set(fmt.Sprintf("proxies/p%d", p), nil)
		for c := range clusters {
			id := fmt.Sprintf("%d-%d", p, c)
			w.set("clusters/c"+id, map[string]any{
				"proxyRef": named(fmt.Sprintf("p%d", p)), "serviceRef": named("s" + id),
				"filterRefs": []any{named("shared"), named("f" + id)},
			})
			w.set("services/s"+id, map[string]any{"tls": map[string]any{"certificateRef": named("t" + id)}})
			w.set("filters/f"+id, map[string]any{"type": "x"})
			w.config("secret/t"+id, "1")
		}
	}
	w.Evaluate()
	return w
}

// BenchmarkLeaf is one change of a Secret among 10,000 nodes: it evaluates the Secret and the three nodes above it.
func BenchmarkLeaf(b *testing.B) {
	w := wide(b)
	b.ReportMetric(float64(w.Len()), "nodes")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.config("secret/t7-7", fmt.Sprint(i))
		if done := w.Evaluate(); done.Evaluated != 4 {
			b.Fatal(done.Evaluated)
		}
	}
}

// BenchmarkStatusNoise is a write of an object that changes nothing that counts.
func BenchmarkStatusNoise(b *testing.B) {
	w := wide(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.set("filters/f7-7", map[string]any{"type": "x"}, with(int64(i), "status", "noise"))
		if done := w.Evaluate(); done.Evaluated != 0 {
			b.Fatal(done.Evaluated)
		}
	}
}

// BenchmarkMissing is one change below a node whose references are optional, and lead to nothing but for one. The time for each
// reference does not depend on their number.
func BenchmarkMissing(b *testing.B) {
	for _, count := range []int{referent.MaxReferences / 10, referent.MaxReferences} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			definition := levels(0, true)[0]
			definition.Refs = []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.many[*].name", Optional: true}}
			w := newWorld(b, definition)
			many := make([]any, 0, count)
			for i := range count {
				many = append(many, named(fmt.Sprintf("s%d", i)))
			}
			w.set("l0/o", map[string]any{"many": many})
			for i := range count {
				w.absent(fmt.Sprintf("secret/s%d", i))
			}
			w.Evaluate()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.config("secret/s0", fmt.Sprint(i))
				if done := w.Evaluate(); done.Evaluated != 2 {
					b.Fatal(done.Evaluated)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/reference")
		})
	}
}

// BenchmarkStart builds the graph of 10,000 nodes and evaluates it for the first time.
func BenchmarkStart(b *testing.B) {
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var w world
	for b.Loop() {
		w = wide(b)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(w.Len()), "live-B/node")
}
