package stamp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

func TestDirectWriteIsWhatTheWebhookWouldStamp(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	states := map[reference.Ref]digest.State{app: {Absent: true}}
	result, err := stamp.RequestReload(reloadtest.StampedView(t, ring), stamp.Inputs{States: states, Ring: ring, Namespace: "shop", Now: time.Now()})
	require.NoError(t, err)
	assert.True(t, result.Stamped, "the reload is due")
	assert.NotEmpty(t, result.Managed[stamp.Hash])
	assert.NotContains(t, result.Managed, stamp.Dummy)
}

func TestDirectWriteOfWhatIsNotDueStampsNothing(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	view := reloadtest.View(t)
	view.Managed[stamp.Record] = "v1:-:" + string(newest.ID) + ":configmap/app=-"
	states := map[reference.Ref]digest.State{{Kind: reference.ConfigMap, Name: "app"}: {Absent: true}}
	result, err := stamp.RequestReload(view, stamp.Inputs{States: states, Ring: ring, Namespace: "shop", Now: time.Now()})
	require.NoError(t, err)
	assert.False(t, result.Stamped, "the content is the recorded one")
}

func TestDirectWriteIsNoneWhereTheKeysChangeInBetween(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	content := digest.Content{Ref: app, Namespace: "shop"}
	states := map[reference.Ref]digest.State{app: digest.StateOf(content, "uid", "1", digesttest.Ring(t, "a"))}
	for _, ring := range []string{"ab", "b"} {
		_, err := stamp.RequestReload(reloadtest.StampedView(t, digesttest.Ring(t, "a")), stamp.Inputs{States: states, Ring: digesttest.Ring(t, ring), Namespace: "shop", Now: time.Now()})
		require.Error(t, err, "a rejection has no managed annotations: writing it would remove all of them")
	}
}

func TestDirectWriteBeyondTheBudgetFails(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{{Kind: reference.ConfigMap, Name: "app"}: {Absent: true}}
	view := reloadtest.StampedView(t, digesttest.Ring(t, "a"))
	view.TemplateBudget = 10
	_, err := stamp.RequestReload(view, stamp.Inputs{States: states, Ring: digesttest.Ring(t, "a"), Namespace: "shop", Now: time.Now()})
	require.Error(t, err, "a reload that cannot be made is no reload that is done")
}
