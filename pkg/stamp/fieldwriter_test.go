package stamp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// A rollback finds its pods only if the fields of an earlier template come back with its hash.
func TestFieldWriterKnowsWhatEarlierTemplatesHad(t *testing.T) {
	t.Parallel()
	const hash, changed, other = "v1:1c9e04ab:11", "v1:1c9e04ab:22", "v1:1c9e04ab:33"
	earlier := record.Template{Hash: changed, Fields: `{"from":"x"}`}
	last := record.LastReload{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Hash: hash, Cause: record.CauseConfigChange, Templates: []record.Template{earlier}}
	old := View{Managed: Managed{Hash: hash, LastReload: last.String()}}
	w := fieldWriter{facts: &facts{Write: Write{Old: old, New: View{template: map[string]any{}}}}}

	_, known := w.earlier(earlier.Hash)
	assert.True(t, known, "the last reload names it")
	_, known = w.earlier(hash)
	assert.True(t, known, "it is the stored one")
	_, known = w.earlier(other)
	assert.False(t, known, "it has never been here")

	present := record.Template{Hash: hash}
	assert.Equal(t, []record.Template{present, earlier}, w.templates(old.Managed, other), "the newest is the first")
	assert.Equal(t, []record.Template{present}, w.templates(old.Managed, earlier.Hash), "the one that comes back is not replaced")
	w.New.template = nil
	assert.Empty(t, w.templates(old.Managed, hash), "no strategy writes anything")
}
