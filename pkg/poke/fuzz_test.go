package poke_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
)

// Whatever annotations an answer has: it counts as a reload only with an explanation that names the digest, and never if
// the request was stored unchanged.
func FuzzJudge(f *testing.F) {
	f.Add(digest, "", reloaded, int64(4), int64(5))
	f.Add(digest, digest+"@4", another, int64(4), int64(4))
	f.Add("", "", "{", int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, proof, dummy, last string, bound, answered int64) {
		keys := annotation.DefaultKeys()
		answer := &metav1.ObjectMeta{Generation: answered, Annotations: map[string]string{
			keys.ConfigHash: dummy, keys.LastReload: last,
		}}
		got := poke.Judge(answer, poke.Request{Digest: proof, Generation: bound})
		switch got.Outcome {
		case poke.Reloaded:
			assert.Contains(t, []string{got.LastReload.Hash, got.LastReload.Digest}, proof)
			assert.NotEqual(t, bound, answered, "no new template without a new generation")
			assert.NotEqual(t, poke.Dummy(proof, bound), dummy)
		case poke.Unseen:
			assert.Equal(t, poke.Dummy(proof, bound), dummy)
		case poke.Current, poke.Purged, poke.Stale:
			assert.Zero(t, got.LastReload, "nothing is explained that did not happen")
		default:
			assert.Failf(t, "an answer is no failure", "%s", got.Outcome)
		}
	})
}
