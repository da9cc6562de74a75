package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

func TestAReloadNamesWhatHasChangedBelowACustomResource(t *testing.T) {
	t.Parallel()
	proxy := reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "p"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	const before = "0011223344556677"
	known := record.New("", "1c9e04ab", map[reference.Ref]record.Item{proxy: {Entry: before}, app: {Entry: before}})
	steps := []digest.Step{{From: "older", Causes: []string{"secret/old"}}, {From: before, Causes: []string{"secret/tls"}}}
	f := facts{
		Write: Write{Old: View{Managed: Managed{Record: known.String()}}},
		live:  live{policy.Input{Current: map[reference.Ref]digest.State{proxy: {Steps: steps}, app: {Steps: steps}}}},
	}
	assert.Equal(t, "secret/tls", f.changesBelow(proxy), "since the pods were started")
	assert.Empty(t, f.changesBelow(app), "a ConfigMap is its own cause")
}

func TestAStrategyOfReloaderWritesNothingAboutACustomResource(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "1")
	newest, _ := ring.Newest()
	read := digest.State{SHA1: "x", Entries: map[digest.KeyID]digest.Entry{newest.ID: {1}}}
	proxy := reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "p"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	w := fieldWriter{
		strategy: annotation.Annotations,
		live:     live{policy.Input{Ring: ring, Current: map[reference.Ref]digest.State{proxy: read, app: read}}},
	}
	assert.Empty(t, w.write(strategy.Fields{}, []reference.Ref{proxy}, true).From)
	assert.Contains(t, w.write(strategy.Fields{}, []reference.Ref{app, proxy}, true).From, `"name":"app"`, "the others are named")
}
