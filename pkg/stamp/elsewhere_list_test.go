package stamp

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// listOfSecrets is a workload with a list of Secrets, of which an installation with --secrets=false tracks nothing.
func listOfSecrets(t *testing.T) (w *world, off Reader) {
	t.Helper()
	w = newWorld(t)
	w.set(secret("db"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("", "db"))))
	w.at(t, 0, "created")
	off = w.reader
	off.Dialects = []annotation.Dialect{annotation.SAP{Keys: w.keys, WithoutSecrets: true}}
	return w, off
}

// fill leaves some bytes for the annotations on the workload.
func (w *world) fill(left int) *Rejection {
	budget := w.view().WorkloadBudget
	return w.write(func(raw map[string]any) { annotate(raw, "big", strings.Repeat("x", budget-len("big")-left)) })
}

// What is due restarts the pods once, whichever webhooks answer.
func TestListOfSecretsBesideAnInstallationWithoutSecrets(t *testing.T) {
	t.Parallel()
	change := func(w *world) { w.set(secret("db"), "B") }
	for name, tc := range map[string]struct {
		reason string
		// before is what only this installation sees.
		before, step func(*world)
	}{
		"a change": {reason: "It is due.", step: change},
		"a change, without a Record": {
			reason: "The hash is what is known.", step: change, before: func(w *world) {
				w.away = true
				require.Nil(w.t, w.write(func(raw map[string]any) { w.setManaged(raw, Record, "") }))
				w.away = false
			},
		},
		"a change, without bytes for last-reload": {
			reason: "The stamp has no explanation.", step: change, before: func(w *world) { require.Nil(w.t, w.fill(40)) },
		},
		"a restart that a PUT ends": {
			reason: "Pods are left that have the old content.",
			before: func(w *world) {
				w.kind = restartable(w.t)
				w.set(secret("db"), "B")
				w.restartNow()
			},
			step: func(w *world) {
				require.Nil(w.t, w.write(func(raw map[string]any) { delete(raw["spec"].(map[string]any), "restartAt") }))
			},
		},
	} {
		for _, way := range []string{"alone", "called after", "called before", "a replica with the other flags"} {
			t.Run(way+": "+name, func(t *testing.T) {
				t.Parallel()
				w, off := listOfSecrets(t)
				if tc.before != nil {
					tc.before(w)
				}
				w.webhooks = map[string][]Reader{
					"called after": {w.reader, off}, "called before": {off, w.reader}, "a replica with the other flags": {off},
				}[way]
				restarts := w.restarts
				tc.step(w)
				w.at(t, restarts+1, tc.reason)
				w.set(secret("db"), "C")
				w.at(t, restarts+2, "the next change counts")
			})
		}
	}
}

func restartable(t testing.TB) workload.Kind {
	t.Helper()
	kind, err := workload.ParseKind("argoproj.io/v1alpha1/Rollout=spec.template")
	require.NoError(t, err)
	return kind
}

// The warning of an installation that tracks nothing of the workload names no consequence: that depends on the other one.
func TestRecordOfAnotherInstallationThatDoesNotFit(t *testing.T) {
	t.Parallel()
	w, off := listOfSecrets(t)
	w.webhooks = []Reader{off}
	require.Nil(t, w.fill(10))
	assert.NotContains(t, w.managed(), Record)
	assert.Equal(t, []string{
		"pod-reloader: the annotations are too large to keep the config-record, which another installation may need; shorten other annotations",
	}, w.result.Warnings)
}

// What the pods of releases start with while a label excludes the workload is compared when the label goes.
func TestReleaseOfAnExcludedWorkloadBesideAnotherInstallation(t *testing.T) {
	t.Parallel()
	for way, due := range map[string]int{
		"called after": 1, "called before": 1, "a replica with the other flags": 0, // which knows nothing of these pods
	} {
		for name, releases := range map[string][]string{"a release": {"image:2"}, "two releases": {"image:2", "image:3"}} {
			t.Run(way+": "+name, func(t *testing.T) {
				t.Parallel()
				h := newHiding(t)
				h.webhooks = besides(h.world)[way]
				require.Nil(t, h.write(func(raw map[string]any) { h.ignore(raw) }))
				for _, image := range releases {
					require.Nil(t, h.write(setImage(image)))
				}
				h.set(cm("b"), "B")
				h.rv += int(time.Hour / time.Second) // the clock goes by it
				require.Nil(t, h.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
				due := due
				if way == "called after" && len(releases) > 1 {
					due = 0 // the second release brings the Record of the first
				}
				h.at(t, len(releases)+due, "the change")
				h.set(cm("b"), "C")
				h.at(t, len(releases)+due+1, "the next change counts")
			})
		}
	}
}

// A label excludes the workload, and nothing of it is tracked, while its pods start with a later content than was recorded.
func TestReleaseOfAnExcludedWorkloadThatTracksNothing(t *testing.T) {
	t.Parallel()
	h := newHiding(t)
	require.Nil(t, h.write(func(raw map[string]any) { h.ignore(raw) }))
	require.Nil(t, h.write(setImage("image:2")))
	h.annotate("configmaps.exclude.reloader.stakater.com/reload", "b")
	h.annotate("secrets.exclude.reloader.stakater.com/reload", "a")
	h.set(cm("b"), "B")
	require.Nil(t, h.write(setImage("image:3")))
	h.quiesce()
	h.annotate("configmaps.exclude.reloader.stakater.com/reload", "")
	h.annotate("secrets.exclude.reloader.stakater.com/reload", "")
	require.Nil(t, h.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
	h.at(t, 2, "two releases, and no reload")
	h.set(cm("b"), "C")
	h.at(t, 3, "the next change counts")
}

// What was tracked until the workload opted out needs no Record.
func TestNoRecordThatDoesNotFitIsMissedAfterOptingOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(secret("db"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("", "db"))))
	require.Nil(t, w.fill(1))
	require.Nil(t, w.write(func(raw map[string]any) {
		annotations := raw["metadata"].(map[string]any)["annotations"].(map[string]any)
		maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasSuffix(key, "/secrets") })
		annotations["big"] = annotations["big"].(string) + strings.Repeat("x", 40)
	}))
	require.Nil(t, w.write(func(raw map[string]any) { raw["spec"].(map[string]any)["replicas"] = 3 }))
	assert.Empty(t, w.result.Warnings)
}
