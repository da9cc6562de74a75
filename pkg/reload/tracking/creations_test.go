package tracking

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// version is a Deployment web as it was at a resourceVersion, which tracks a ConfigMap or not, with a Record or without one.
func version(uid, at string, keys ...string) workload.Summary {
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[annotation.DefaultPrefix+key] = "app"
	}
	return summaryOf(workload.Deployment(), map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": at, "annotations": annotations,
	}})
}

// The pods of a workload that is created while its kind is watched start with the configuration as of its creation, which is looked up by
// its resourceVersion. Any other workload starts with what the loop finds, however young it is: the kind may be followed later than others.
func TestCreationOfAWorkloadWithoutARecordIsKept(t *testing.T) {
	t.Parallel()
	none := workload.Summary{}
	for name, c := range map[string]struct {
		// listed is the version of the listing that brings the first one; empty if that comes later.
		listed string
		seen   []workload.Summary
		want   string
	}{
		"created":                        {"", []workload.Summary{none, version("u", "7", "configmaps")}, "7"},
		"changed before it has a Record": {"", []workload.Summary{none, version("u", "7", "configmaps"), version("u", "8", "configmaps", "secrets")}, "7"},
		"created and recorded":           {"", []workload.Summary{none, version("u", "7", "configmaps"), version("u", "8", "configmaps", "config-record")}, ""},
		"created with a Record":          {"", []workload.Summary{none, version("u", "7", "configmaps", "config-record")}, ""},
		"created, asks for nothing":      {"", []workload.Summary{none, version("u", "7")}, ""},
		"asks for it after its creation": {"", []workload.Summary{none, version("u", "7"), version("u", "8", "configmaps")}, ""},
		"there before the watch":         {"9", []workload.Summary{none, version("u", "7", "configmaps")}, ""},
		"there before, changed":          {"9", []workload.Summary{none, version("u", "7", "configmaps"), version("u", "10", "configmaps", "secrets")}, ""},
		"there before, created again":    {"9", []workload.Summary{none, version("u", "7", "configmaps"), version("v", "10", "configmaps")}, "10"},
		"created and deleted":            {"", []workload.Summary{none, version("u", "7", "configmaps"), none}, ""},
		"created again, by a listing":    {"", []workload.Summary{version("u", "7", "configmaps"), version("v", "9", "configmaps")}, "9"},
		"created twice, by a listing":    {"", []workload.Summary{none, version("u", "7", "configmaps"), version("v", "9", "configmaps")}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := leading(t, Options{})
			w := &watched{kind: workload.Deployment()}
			for i := range len(c.seen) - 1 {
				l.tracking.changes.changed(w, c.seen[i], c.seen[i+1], c.listed)
				c.listed = ""
			}
			key := workload.Key{Kind: workload.Deployment().ID(), Namespace: "shop", Name: "web"}
			assert.Equal(t, c.want, l.state.Creations.Version(key), "the resourceVersion at which the configuration is looked up")
		})
	}
}

// A workload can be created again after a reconciliation has not found the one before.
func TestNothingIsForgottenOfAWorkloadThatHasComeMeanwhile(t *testing.T) {
	t.Parallel()
	web := version("u", "7", "configmaps")
	for name, c := range map[string]struct {
		comes bool
		want  string
	}{"the workload has come": {true, "7"}, "the workload is gone": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := leading(t, Options{})
			watch := &recovering{}
			w := &watched{kind: web.Kind, workloads: watch}
			watch.deliver = func(before, after workload.Summary) { l.tracking.changes.changed(w, before, after, "") }
			l.tracking.watches.add(w)
			_, found := l.tracking.Get(t.Context(), web.Key())
			require.False(t, found, "the workload does not exist yet")
			watch.put(web)
			if !c.comes {
				watch.kept = workload.Summary{Kind: web.Kind}
			}
			l.tracking.ForgetDeleted(web.Key())
			assert.Equal(t, c.want, l.state.Creations.Version(web.Key()))
		})
	}
}

func TestKindRemovalForgetsState(t *testing.T) {
	t.Parallel()
	l, _ := leading(t, Options{})
	web := version("u", "7", "configmaps")
	l.state.Creations.Created(web.Key(), "7")
	l.tracking.ForgetDeleted(web.Key())
	assert.Empty(t, l.state.Creations.Version(web.Key()))
}
