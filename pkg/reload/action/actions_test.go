package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A stamp that was not stored is reported once, however often the workload is looked at, and again where the next is lost too.
func TestLostStampIsReportedOnceForEach(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	actions := newActions(Options{}, out)
	at := func(generation int64) gather.Subject {
		return stampedAt(t, generation, record.LastReload{Hash: "abc", Generation: generation - 1})
	}
	for n, generation := range []int64{2, 3} {
		reloaded{at(generation - 1), nil, record.LastReload{}, generation}.close(t.Context(), actions.base)
		for range 3 {
			actions.ReportLostStamp(at(generation))
			InOrder{at(generation)}.close(t.Context(), actions.base)
		}
		assert.Len(t, out.Messages, n+1)
	}
	actions.ReportLostStamp(at(4))
	assert.Len(t, out.Messages, 2, "another writer has written since")
}

// stampedAt is a Deployment of a generation whose template has no stamp.
func stampedAt(t *testing.T, generation int64, last record.LastReload) gather.Subject {
	t.Helper()
	s := gather.Subject{
		Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t),
		Object: reloadtest.Summary(workload.Deployment(), map[string]any{"metadata": map[string]any{"generation": generation}}),
	}
	s.View.Managed = stamp.Managed{}
	if last.Generation > 0 || last.Hash != "" {
		last.Time, last.Cause = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), record.CauseConfigChange
		s.View.Managed[stamp.LastReload] = last.String()
	}
	return s
}

// After a restore of etcd, another write gives the workload the generation of a stamp that is lost with its last-reload.
func TestStampThatARestoreTakesBackIsNotReportedAsLost(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]record.LastReload{
		"the first stamp": {}, "a later stamp": {Hash: "abc", Generation: 1}, "a reload of an unknown generation": {Hash: "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			actions := newActions(Options{}, out)
			reloaded{stampedAt(t, 4, last), nil, record.LastReload{}, 5}.close(t.Context(), actions.base)
			actions.ReportLostStamp(stampedAt(t, 5, last))
			assert.Empty(t, out.Messages)
		})
	}
}

// The webhook of the new Job could not read the configuration: its template has no stamp, and its pods are new.
func TestJobWithoutAStampIsNotLost(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	actions := newActions(Options{}, out)
	s := gather.Subject{
		Key: workload.Key{Namespace: "shop", Name: "import"}, View: reloadtest.View(t),
		Object: reloadtest.Summary(workload.Job(), map[string]any{"metadata": map[string]any{"generation": int64(1)}}),
	}
	reloaded{s, nil, record.LastReload{}, 1}.close(t.Context(), actions.base)
	actions.ReportLostStamp(s)
	assert.Empty(t, out.Messages)
}

// Another webhook has removed the stamp from a template that had none before: no new generation shows that the request was answered, and
// the answer is that of a workload that is up to date.
func TestLostStampIsReportedByTheGenerationThatLastReloadNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last       record.LastReload
		hash       string
		generation int64
		restarts   bool
		reported   bool
	}{
		"made at this generation":       {last: record.LastReload{Hash: "abc", Generation: 3}, generation: 3, reported: true},
		"stored":                        {last: record.LastReload{Hash: "abc", Generation: 3}, hash: "abc", generation: 3},
		"made at an earlier generation": {last: record.LastReload{Hash: "abc", Generation: 2}, generation: 3},
		"a kind without generations":    {last: record.LastReload{Hash: "abc"}},
		"a reload that needs no stamp":  {last: record.LastReload{Generation: 3}, generation: 3},
		"a restart by another field":    {last: record.LastReload{Hash: "abc", Generation: 3}, generation: 3, restarts: true},
		"nothing was reloaded":          {generation: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			s := stampedAt(t, tc.generation, tc.last)
			s.View.Managed[stamp.Hash] = tc.hash
			s.View.Intent.Restart = tc.restarts
			newActions(Options{}, out).ReportLostStamp(s)
			assert.Equal(t, tc.reported, len(out.Messages) == 1)
		})
	}
}

func TestLostStampIsExplainedByTheSchemaOfItsKindIfThatCanBe(t *testing.T) {
	t.Parallel()
	rollout, err := workload.ParseKind("argoproj.io/v1alpha1/Rollout=spec.template")
	require.NoError(t, err)
	const schema = "the schema of Rollout drops metadata.annotations there: declare them, or set x-kubernetes-preserve-unknown-fields; or another"
	assert.ErrorContains(t, lost(rollout), schema)
	deployment := lost(workload.Deployment())
	require.ErrorContains(t, deployment, "the stamp on the pod template at spec.template is not stored; another admission webhook or policy removes it")
	require.ErrorContains(t, deployment, "or the reload request before pod-reloader's webhook is called: make it keep")
	assert.NotContains(t, deployment.Error(), "schema")
}

func TestJobsThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	owned := map[string]any{"ownerReferences": []any{map[string]any{"kind": "CronJob", "name": "nightly", "controller": true}}}
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	job, deployment := workload.Job(), workload.Deployment()
	for name, tc := range map[string]struct {
		kind             workload.Kind
		metadata, status map[string]any
		rerun, pending   bool
		ignored          bool
	}{
		"a Deployment": {kind: deployment},
		"a Deployment that another object controls": {kind: deployment, metadata: owned, status: complete},
		"a Job that runs":                            {kind: job},
		"a Job of a CronJob":                         {kind: job, metadata: owned, ignored: true},
		"a Job of a CronJob, with reruns":            {kind: job, metadata: owned, rerun: true, pending: true, ignored: true},
		"finished":                                   {kind: job, status: complete, ignored: true},
		"finished, with reruns":                      {kind: job, status: complete, rerun: true},
		"finished after the change of configuration": {kind: job, status: complete, pending: true},
	} {
		s := reloadtest.Summary(tc.kind, map[string]any{"metadata": tc.metadata, "status": tc.status})
		assert.Equal(t, tc.ignored, Jobs{RerunFinished: tc.rerun}.Ignores(s, tc.pending), name)
	}
}
