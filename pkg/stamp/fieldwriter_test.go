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
	present := record.Template{Hash: hash}
	assert.Equal(t, []record.Template{present, earlier}, old.templates(), "the stored one, and what the last reload names")

	f := facts{Write: Write{Old: old, New: View{template: map[string]any{}}}}
	assert.Equal(t, []record.Template{present, earlier}, f.replacedTemplates(old.Managed, other), "the newest is the first")
	assert.Equal(t, []record.Template{present}, f.replacedTemplates(old.Managed, earlier.Hash), "the one that comes back is not replaced")
	f.New.template = nil
	assert.Empty(t, f.replacedTemplates(old.Managed, hash), "no strategy writes anything")
}
