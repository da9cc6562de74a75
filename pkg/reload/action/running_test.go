package action

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A leader that ends between the Job and the stamp leaves the reload due: its successor makes no second Job.
func TestRunIsRepeatedWithoutASecondJob(t *testing.T) {
	t.Parallel()
	b := &batch{uid: "u1", jobs: map[string]int{}}
	for attempt := range 2 {
		logged := ""
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged += args }, funcr.Options{}))
		actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
		s, verdict := dueCronJob(true)
		ended := actions.runs.run(ctx, &s, verdict, contentOf("hash"))
		assert.Nil(t, ended, "the stamp follows")
		assert.NotEmpty(t, s.Effects.Run)
		assert.Contains(t, logged, fmt.Sprintf(`"existed"=%t`, attempt > 0))
	}
	require.Len(t, b.jobs, 1, "both attempts have the same name")

	actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	ended := actions.runs.run(t.Context(), &s, verdict, contentOf("another hash"))
	assert.Nil(t, ended)
	assert.Len(t, b.jobs, 2, "another content is another run")
}

func TestRunIsNotMade(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", nil)
	forbidden.ErrStatus.Message = `jobs.batch is forbidden: User "x" cannot create resource "jobs"`
	owned := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "other", "ownerReferences": []any{map[string]any{"uid": "u1"}},
	}}}
	for name, tc := range map[string]struct {
		batch    batch
		sap      bool
		deployed bool
		stopped  bool
		off      bool
		note     string
	}{
		"SAP's annotations":        {sap: true},
		"runs are switched off":    {batch: batch{uid: "u1"}, off: true},
		"the CronJob is suspended": {batch: batch{uid: "u1", spec: map[string]any{"suspend": true}}},
		"another Job is active": {
			batch: batch{uid: "u1", spec: map[string]any{"concurrencyPolicy": "Forbid"}, active: []unstructured.Unstructured{owned}},
			note:  "concurrencyPolicy is Forbid: the run waits until no other Job is active: other",
		},
		"the active Jobs cannot be listed": {
			batch:   batch{uid: "u1", spec: map[string]any{"concurrencyPolicy": "Replace"}, unlisted: errors.New("away")},
			stopped: true,
		},
		"the permission is missing": {
			batch: batch{uid: "u1", refused: forbidden},
			note:  `the CronJob is not run at once, only its next run gets the new configuration: create job backup-a5c3d1394d: jobs.batch is forbidden: User "x" cannot create resource "jobs"`,
		},
		"the credentials are not accepted": {
			batch:   batch{uid: "u1", refused: apierrors.NewUnauthorized("expired")},
			stopped: true,
		},
		"an admission policy denies it": {
			batch:   batch{uid: "u1", refused: apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "backup-1", nil)},
			stopped: true, note: `create job backup-a5c3d1394d: jobs "backup-1" is forbidden: <nil>`,
		},
		"the CronJob was created again": {batch: batch{uid: "u2"}, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, out := &tc.batch, &reloadtest.Outbox{}
			b.jobs = map[string]int{}
			actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b, WithoutRuns: tc.off}, Client: b}, out)
			s, verdict := dueCronJob(!tc.sap)
			ended := actions.runs.run(t.Context(), &s, verdict, contentOf("hash"))
			assert.Equal(t, tc.stopped, ended != nil)
			if tc.stopped {
				require.NotNil(t, ended)
				assert.Positive(t, ended.close(t.Context(), actions.base).RequeueAfter, "tried again")
			}
			assert.Empty(t, b.jobs)
			assert.Empty(t, s.Effects.Run)
			if tc.note == "" {
				return
			}
			assert.Equal(t, []string{tc.note}, out.Notes())
			if !tc.stopped {
				InOrder{s}.close(t.Context(), actions.base)
			}
			valid := out.Messages[0].Valid
			assert.True(t, valid == nil || valid(), "the stamp does not take it back before it is written")
		})
	}
}

// The watch may be behind: nothing takes back a Job that the CronJob as it is stored does not ask for.
func TestRunIsNotMadeForACronJobThatDoesNotAskForItByNow(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*batch{
		"the CronJob is excluded":               {labels: map[string]string{annotation.DefaultPrefix + "ignored": "true"}},
		"the CronJob is out of scope":           {labels: map[string]string{"tier": "other"}},
		"the CronJob asks for nothing":          {annotations: map[string]string{}},
		"the CronJob asks for a stamp only":     {annotations: map[string]string{annotation.DefaultPrefix + "configmaps": "app"}},
		"the CronJob lists another object":      {annotations: map[string]string{reloadList: "other"}},
		"the CronJob lists further objects too": {annotations: map[string]string{reloadList: "app,other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.uid, b.jobs = "u1", map[string]int{}
			actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b, InScope: notOther}, &reloadtest.Outbox{})
			s, verdict := dueCronJob(true)
			assert.Nil(t, actions.runs.run(t.Context(), &s, verdict, contentOf("hash")), "the reload goes on")
			assert.Equal(t, b.annotations[reloadList] == "app,other", len(b.jobs) == 1)
		})
	}
}

// A Job starts with what is stored, whatever the watch has seen: with the older content of a watch that is behind, the request would be
// rejected, and the CronJob run once more.
func TestRunIsMadeForTheLiveConfiguration(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	states := map[string]map[reference.Ref]digest.State{}
	for _, content := range []string{"recorded", "seen", "newer"} {
		object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
		object.Namespace, object.Name = "shop", "app"
		states[content] = map[reference.Ref]digest.State{app: digest.StateOf(digest.OfConfigMap(object), "uid", content, ring)}
	}
	for name, tc := range map[string]struct {
		live string
		err  error
		// runs is the content that the Job is made for; empty for none.
		runs string
	}{
		"what the watch has seen":          {live: "seen", runs: "seen"},
		"changed again":                    {live: "newer", runs: "newer"},
		"changed back":                     {live: "recorded"},
		"the configuration cannot be read": {err: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &batch{uid: "u1", jobs: map[string]int{}}
			actions := newActions(Options{Client: b, Webhook: true, Gather: gather.Gatherer{
				Reader: bothDialects(t), APIReader: b, Keys: &reloadtest.Keys{Present: ring},
				Store: &reloadtest.Store{States: states[tc.live], Err: tc.err},
			}}, &reloadtest.Outbox{})
			s, verdict := dueCronJob(true)
			s.View.Intent.Asked = true
			in := policy.Input{Namespace: "shop", Intent: s.View.Intent, Refs: []reference.Ref{app}, Current: maps.Clone(states["recorded"]), Ring: ring}
			rec, err := policy.NewRecord(in, "", false)
			require.NoError(t, err)
			text, _ := rec.Text(record.MaxSize)
			in.Known, in.Current = policy.KnownOf("", text), maps.Clone(states["seen"])
			require.Equal(t, policy.Reload, policy.Assess(in).Verdict.Action)
			result := actions.requests.send(t.Context(), s, in, verdict).close(t.Context(), actions.base)
			assert.Positive(t, result.RequeueAfter, "the request cannot be sent either")
			want := map[string]int{}
			if tc.runs != "" {
				newest, _ := ring.Newest()
				hash, err := digest.Hash(newest.ID, digest.Subset(states[tc.runs], in.Refs))
				require.NoError(t, err)
				want[cronrun.CronJob{Object: workload.Object{Kind: s.Object.Kind, Raw: map[string]any{
					"metadata": map[string]any{"uid": "u1", "name": "backup"},
				}}}.JobName("", hash)] = 1
			}
			assert.Equal(t, want, b.jobs)
		})
	}
}

// Under constant change each attempt finds another content: the Jobs keep the distance of reloads, and the stamp does not wait for that.
func TestRunsKeepTheirDistance(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &batch{uid: "u1", jobs: map[string]int{}}
	actions := newActions(Options{
		Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b, Now: func() time.Time { return now }}, Client: b, Gates: state.Gates{Refractory: 5 * time.Second},
	}, &reloadtest.Outbox{})
	for _, attempt := range []struct {
		reload, hash string
		after        time.Duration
		named, owes  bool
		jobs         int
		reason       string
	}{
		{reload: "1", hash: "1", named: true, jobs: 1, reason: "the first"},
		{reload: "1", hash: "1", named: true, jobs: 1, reason: "the same run again"},
		{reload: "1", hash: "2", named: true, owes: true, jobs: 1, reason: "another content, too soon for a Job"},
		{reload: "2", hash: "2", owes: true, jobs: 1, reason: "another reload, too soon for a Job"},
		{reload: "2", hash: "2", after: 5 * time.Second, named: true, jobs: 2, reason: "another reload"},
		{reload: "2", hash: "3", after: 5 * time.Second, named: true, jobs: 3, reason: "another content, when a Job may be made"},
	} {
		now = now.Add(attempt.after)
		s, verdict := dueCronJob(true)
		s.View.Managed = stamp.Managed{stamp.LastReload: attempt.reload}
		b.reload = attempt.reload
		assert.Nil(t, actions.runs.run(t.Context(), &s, verdict, contentOf(attempt.hash)), "the stamp does not wait: "+attempt.reason)
		assert.Equal(t, attempt.owes, s.Effects.NeedsRun, attempt.reason)
		assert.Equal(t, attempt.named, s.Effects.Run.Job != "", "the Event names the Job: "+attempt.reason)
		assert.Len(t, b.jobs, attempt.jobs, attempt.reason)
	}
}

// Under constant change of an object that only stamps the CronJob, the hash of the stamp is not the one that the Job was made for.
func TestOwedRunIsNotMadeForWhatDoesNotRunTheCronJob(t *testing.T) {
	t.Parallel()
	b := &batch{uid: "u1", jobs: map[string]int{}}
	actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	s.View.Managed = stamp.Managed{stamp.Hash: "2", stamp.LastReload: "2"}
	b.reload = "2"
	require.Nil(t, actions.runs.run(t.Context(), &s, verdict, cronrun.Run{Hash: "1", Content: cronrun.Recorded(s.View).Content}))
	require.Len(t, b.jobs, 1)
	actions.state.Runs.Require(s.CronJob(), state.DueRun)
	assert.Zero(t, actions.UpToDate(t.Context(), s).close(t.Context(), actions.base).RequeueAfter)
	assert.Len(t, b.jobs, 1)
	assert.Equal(t, state.NoRun, actions.state.Runs.Pending(s.CronJob()))
}

// A digest key that is rotated between the Job and the stamp makes it no other run, for this leader and for the next.
func TestRotatedKeyMakesNoSecondJob(t *testing.T) {
	t.Parallel()
	old, rotated := digesttest.Ring(t, "a"), digesttest.Ring(t, "ab")
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	b := &batch{uid: "u1", jobs: map[string]int{}}
	actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	s.View.Managed = stamp.Managed{stamp.Hash: "1", stamp.Record: recordOf(old, "1")}
	var due cronrun.Run
	for _, ring := range []digest.Ring{old, rotated} {
		object := &corev1.ConfigMap{Data: map[string]string{"key": "2"}}
		object.Namespace, object.Name = "shop", "app"
		var err error
		due, err = cronrun.Of(s.View, ring, map[reference.Ref]digest.State{app: digest.StateOf(digest.OfConfigMap(object), "uid", "2", ring)})
		require.NoError(t, err)
		require.Nil(t, actions.runs.run(t.Context(), &s, verdict, due))
	}
	assert.Len(t, b.jobs, 1)
	assert.False(t, s.Effects.NeedsRun, "the run has been made")
	last := record.LastReload{Hash: due.Hash}
	assert.False(t, s.Effects.Run.NeedsAnother(s.Object.Kind, s.View.Intent, nil, last), "the stamp under the newest key has the content of the Job")
	assert.True(t, actions.state.Runs.HasRun(s.CronJob(), due.Same[0]), "and so has its Record")
}
