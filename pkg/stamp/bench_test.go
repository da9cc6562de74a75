package stamp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// BenchmarkReload decides about a request for a reload after a change.
func BenchmarkReload(b *testing.B) {
	for _, s := range []annotation.ReloadStrategy{annotation.ConfigHash, annotation.EnvVars, annotation.Annotations} {
		b.Run(string(s), func(b *testing.B) {
			w := newWorld(b)
			w.reader.Strategy = s
			w.set(cm("b"), "A")
			w.set(secret("a"), "A")
			require.Nil(b, w.create(w.manifest(w.lists("b", "a"))))
			w.set(cm("b"), "B")
			old := w.object()
			raw := clone(b, w.stored)
			w.setManaged(raw, Dummy, w.hash())
			req, _ := w.reader.NewWrite(&old, workload.Object{Kind: w.kind, Raw: raw})
			plan := Choose(req)
			require.Equal(b, RuleVerifiedReload, plan.Rule)
			inputs := w.inputs(plan.Reads)
			require.True(b, plan.Apply(req, inputs).Stamped, "the reload is due")
			b.ReportAllocs()
			for b.Loop() {
				plan.Apply(req, inputs)
			}
		})
	}
}
