package configstate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// listedStore returns a Store whose watches have listed ten ConfigMaps, of which the content is known, and their Refs.
func listedStore(b *testing.B) (*Store, []reference.Ref) {
	b.Helper()
	ring := digesttest.Ring(b, "1")
	s, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Ring: func() digest.Ring { return ring }})
	require.NoError(b, err)
	var metas []*metav1.PartialObjectMetadata
	var refs []reference.Ref
	for n := range 10 {
		k := numbered(n)
		refs = append(refs, k.ref)
		metas = append(metas, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: k.ref.Name, UID: "uid", ResourceVersion: "1",
		}})
		s.digests.put(k, version("1", ring.Keys()[0].ID))
	}
	for _, w := range s.watches {
		if w.kind == reference.ConfigMap {
			s.metadata.replace(w, metas)
		} else {
			s.metadata.replace(w, nil)
		}
	}
	require.True(b, s.Synced(), "all watches have listed")
	return s, refs
}

func BenchmarkObserve(b *testing.B) {
	s, refs := listedStore(b)
	b.ReportAllocs()
	for b.Loop() {
		if states := s.Cached("shop", refs); len(states[refs[0]].Entries) != 1 {
			b.Fatal("the content is not known")
		}
	}
}

func BenchmarkListed(b *testing.B) {
	s, _ := listedStore(b)
	b.ReportAllocs()
	for b.Loop() {
		if !s.Listed("shop") {
			b.Fatal("the namespace is not listed")
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s, _ := listedStore(b)
	s.OnEvent(func(Event) {})
	w := s.watches[scopeKey{kind: reference.ConfigMap}]
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "0"}}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		meta.UID, meta.ResourceVersion = types.UID("uid"), fmt.Sprint(n%2)
		s.metadata.put(w, meta, origin{})
	}
}

// BenchmarkReplace is what a listing of 20,000 objects in 200 namespaces takes: the first one, and one that brings nothing new.
func BenchmarkReplace(b *testing.B) {
	var metas []*metav1.PartialObjectMetadata
	for n := range 20_000 {
		metas = append(metas, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("shop-", n%200), Name: fmt.Sprint(n), UID: "uid", ResourceVersion: "1",
		}})
	}
	for name, first := range map[string]bool{"first": true, "again": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Ring: func() digest.Ring { return digest.Ring{} }})
				require.NoError(b, err)
				s.OnEvent(func(Event) {})
				w := s.watches[scopeKey{kind: reference.ConfigMap}]
				if !first {
					s.metadata.replace(w, metas)
				}
				b.StartTimer()
				s.metadata.replace(w, metas)
			}
		})
	}
}
