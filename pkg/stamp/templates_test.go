package stamp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// A rollback finds its pods only if the fields of an earlier template come back with its hash.
func TestFieldsOfEarlierTemplatesAreKnownFromTheLastReload(t *testing.T) {
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

func TestReplacedTemplate(t *testing.T) {
	t.Parallel()
	fields := strategy.Fields{From: "source"}
	assert.Equal(t, []record.Template{{Hash: someHash, Fields: fields.Text()}}, replacedTemplate(Managed{Hash: someHash}, fields))
	assert.Empty(t, replacedTemplate(Managed{Hash: someHash, Restart: "4"}, fields), "only the hash would come back")
	assert.Empty(t, replacedTemplate(Managed{}, fields))

	templateAnnotations := Managed{Hash: "template"}
	templateAnnotations.setFields(fields)
	f := facts{Write: Write{Old: View{Managed: Managed{Hash: someHash}}, New: View{template: map[string]any{}}}}
	assert.Equal(t, []record.Template{{Hash: "template", Fields: fields.Text()}, {Hash: someHash}}, f.replacedTemplates(templateAnnotations, "new"), "the write's own is the first")
}
