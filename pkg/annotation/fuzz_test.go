package annotation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

// A prefix is refused with a message of bounded length, or makes keys that the API server takes.
func FuzzNewKeys(f *testing.F) {
	for _, prefix := range []string{annotation.DefaultPrefix, "example.com", "", "/", "a//", "Ä.example", "-a", "a.b/c"} {
		f.Add(prefix)
	}
	f.Fuzz(func(t *testing.T, prefix string) {
		keys, err := annotation.NewKeys(prefix)
		if err != nil {
			assert.Zero(t, keys)
			assert.Less(t, len(err.Error()), 1000, "a message repeats no more than the beginning of a long prefix")
			return
		}
		for _, key := range []string{
			keys.ConfigMaps, keys.Secrets, keys.ConfigHash, keys.ConfigRecord, keys.ConfigRestart, keys.LastReload,
			keys.IgnoredLabel, keys.DisabledLabel,
		} {
			assert.Empty(t, validation.IsQualifiedName(key), "%q from the prefix %q", key, prefix)
		}
	})
}
