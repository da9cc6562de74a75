package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// While the driver rotates one pod after the other, the recorded version can be later than those of the pods that are left.
func TestLaterRecordedVersionOfAClassIsShownAsThePresentOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	class := reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}
	f.annotations()["secretproviderclass.reloader.stakater.com/reload"] = "vault"
	newest, _ := f.ring.Newest()
	items := map[reference.Ref]record.Item{}
	for ref, state := range map[reference.Ref]digest.State{app: f.in.States[app], db: f.in.States[db], class: f.state("10", "rotated")} {
		item, read := record.ItemOf(newest.ID, state)
		require.True(t, read, "%s has an Entry under the newest key", ref)
		items[ref] = item
	}
	f.annotations()["pod-reloader.cs.sap.com/config-record"] = record.New(f.hash, newest.ID, items).String()
	f.in.States[class] = f.state("5", "before")
	f.classes = true
	report := f.explain()
	assert.Equal(t, "nothing", report.Verdict, report.Reason)
	rows := map[string]explain.Row{}
	for _, row := range report.Configuration {
		rows[row.Ref] = row
	}
	require.Contains(t, rows, class.String())
	assert.Equal(t, rows[class.String()].Known, rows[class.String()].Now)
}
