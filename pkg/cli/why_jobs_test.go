package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// jobPages are the Jobs of a namespace.
type jobPages struct {
	client.Reader
	jobs    []unstructured.Unstructured
	largest int
	err     error
}

func (p *jobPages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	list.SetContinue("")
	p.largest = max(p.largest, reloadtest.Page(list, p.jobs, o))
	return p.err
}

// The command can run inside of a replica, and a namespace can have thousands of Jobs.
func TestJobsAreListedWhereARunMayWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	in := explain.Input{Keys: annotation.DefaultKeys(), Now: now, Object: workload.Object{Kind: workload.CronJob(), Raw: map[string]any{
		"metadata": map[string]any{"name": "backup", "namespace": "shop", "uid": "u1"}, "spec": map[string]any{"concurrencyPolicy": "Forbid"},
	}}}
	in.View.Intent = annotation.Intent{Asked: true, Tracked: map[reference.Ref]annotation.Trigger{app: {AtOnce: true}}}
	in.View.Managed = stamp.Managed{stamp.Hash: "1", stamp.LastReload: record.LastReload{
		Time: now, Hash: "1", Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}.String()}
	p := &jobPages{}
	for range 60 {
		p.jobs = append(p.jobs, unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "other"}}})
	}
	p.jobs[59].SetName("long")
	p.jobs[59].Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"uid": "u1"}}
	e := explainer{jobs: func(namespace string) ([]cronrun.Job, error) {
		return jobs(t.Context(), p, namespace, in.Keys.ConfigHash)
	}}
	found, err := e.jobsOf(in)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "long", found[0].Name)
	assert.Equal(t, 25, p.largest)

	p.err = errors.New("forbidden")
	_, err = e.jobsOf(in)
	require.EqualError(t, err, "cannot show whether the run for the last reload waits, since the Jobs cannot be listed: forbidden")
	in.View.Intent = in.View.Intent.NotAtOnce()
	found, err = e.jobsOf(in)
	require.NoError(t, err, "a CronJob that is not run needs no permission")
	assert.Empty(t, found)
}
