package tracking

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// version is a Deployment web as it was at a resourceVersion, which tracks a ConfigMap or not, with a Record or without one.
func version(uid, at string, created time.Time, keys ...string) workload.Summary {
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[annotation.DefaultPrefix+key] = "app"
	}
	return summaryOf(workload.Deployment(), map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": at, "annotations": annotations,
		"creationTimestamp": created.UTC().Format(time.RFC3339),
	}})
}

// The pods of a workload that is created while the loop watches start with the configuration as of its creation, which is looked up by
// its resourceVersion. Any other workload starts with what the loop finds.
func TestCreationOfAWorkloadWithoutARecordIsKept(t *testing.T) {
	t.Parallel()
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	none := workload.Summary{}
	for name, c := range map[string]struct {
		seen []workload.Summary
		want string
	}{
		"created":                        {[]workload.Summary{none, version("u", "7", later, "configmaps")}, "7"},
		"changed before it has a Record": {[]workload.Summary{none, version("u", "7", later, "configmaps"), version("u", "8", later, "configmaps", "secrets")}, "7"},
		"created and recorded":           {[]workload.Summary{none, version("u", "7", later, "configmaps"), version("u", "8", later, "configmaps", "config-record")}, ""},
		"created with a Record":          {[]workload.Summary{none, version("u", "7", later, "configmaps", "config-record")}, ""},
		"created, asks for nothing":      {[]workload.Summary{none, version("u", "7", later)}, ""},
		"asks for it after its creation": {[]workload.Summary{none, version("u", "7", later), version("u", "8", later, "configmaps")}, ""},
		"older than the process":         {[]workload.Summary{none, version("u", "7", earlier, "configmaps")}, ""},
		"created and deleted":            {[]workload.Summary{none, version("u", "7", later, "configmaps"), none}, ""},
		"created again, by a listing":    {[]workload.Summary{version("u", "7", earlier, "configmaps"), version("v", "9", later, "configmaps")}, "9"},
		"created twice, by a listing":    {[]workload.Summary{none, version("u", "7", later, "configmaps"), version("v", "9", later, "configmaps")}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := leading(t, Options{})
			report := changesOf(l, workload.Deployment())
			for i := range len(c.seen) - 1 {
				report(c.seen[i], c.seen[i+1])
			}
			key := workload.Key{Kind: workload.Deployment().ID(), Namespace: "shop", Name: "web"}
			assert.Equal(t, c.want, l.state.Creations.Version(key), "the resourceVersion at which the configuration is looked up")
		})
	}
}

// A creation time has whole seconds.
func TestCreationInTheSecondInWhichTheProcessBeganIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(900 * time.Millisecond)
		l, _ := leading(t, Options{})
		web := version("u", "7", time.Now(), "configmaps")
		changesOf(l, web.Kind)(workload.Summary{}, web)
		assert.Equal(t, "7", l.state.Creations.Version(web.Key()))
	})
}

// A workload can be created again after a reconciliation has not found the one before.
func TestNothingIsForgottenOfAWorkloadThatHasComeMeanwhile(t *testing.T) {
	t.Parallel()
	web := version("u", "7", time.Now().Add(time.Hour), "configmaps")
	for name, c := range map[string]struct {
		comes bool
		want  string
	}{"the workload has come": {true, "7"}, "the workload is gone": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := leading(t, Options{})
			watch := &recovering{}
			w := &watched{kind: web.Kind, workloads: watch}
			watch.deliver = func(before, after workload.Summary) { l.tracking.changes.changed(w, before, after) }
			l.tracking.watches.add(w)
			_, found := l.tracking.Get(t.Context(), web.Key())
			require.False(t, found)
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
	web := version("u", "7", time.Now(), "configmaps")
	l.state.Creations.Created(web.Key(), "7")
	l.tracking.ForgetDeleted(web.Key())
	assert.Empty(t, l.state.Creations.Version(web.Key()))
}
