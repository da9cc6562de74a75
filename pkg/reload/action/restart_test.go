package action

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// argoAPI stores the annotations of patches, unless a webhook restores those of before.
type argoAPI struct {
	client.Client
	restores bool
	// lost is the error of a patch that is stored.
	lost    error
	patches []argoPatch
}

type argoPatch struct {
	Metadata struct {
		ResourceVersion string
		Annotations     map[string]string
	}
	Spec map[string]any
}

func (a *argoAPI) Patch(_ context.Context, answer client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(answer)
	if err != nil {
		return err
	}
	var p argoPatch
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	a.patches = append(a.patches, p)
	answer.SetGeneration(4)
	if !a.restores {
		answer.SetAnnotations(p.Metadata.Annotations)
	}
	return a.lost
}

// rolloutKind is that of Argo Rollouts.
func rolloutKind() workload.Kind {
	return workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, Template: []string{"spec", "template"},
	}
}

// dueRollout returns a Rollout whose pods have started without configmap/app, which is there now.
func dueRollout(t *testing.T, c client.Client, out report.Sender, hash string) (*Actions, gather.Subject, policy.Input) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	content := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	actions := newActions(Options{Client: c, Webhook: true, Gates: state.Gates{Refractory: 5 * time.Second}, Gather: gather.Gatherer{
		Reader: reloadtest.Reader(), Now: func() time.Time { return now }, Keys: &reloadtest.Keys{Present: ring},
		Store: &reloadtest.Store{States: map[reference.Ref]digest.State{app: content}},
	}}, out)
	s := reloadtest.Web(t)
	s.Object = reloadtest.Summary(rolloutKind(), map[string]any{"metadata": map[string]any{"uid": "u1", "resourceVersion": "7", "generation": int64(3)}})
	s.View.Intent.Restart = true
	newest, _ := ring.Newest()
	s.View.Managed = stamp.Managed{stamp.Record: "v1:" + hash + ":" + string(newest.ID) + ":configmap/app=-"}
	if hash != "-" {
		s.View.Managed[stamp.Hash] = hash
	}
	in := actions.gather.Input(s)
	require.NoError(t, actions.gather.Read(t.Context(), s, in, policy.Assess(in).Reads))
	return actions, s, in
}

func TestRestartIsOneWrite(t *testing.T) {
	t.Parallel()
	c, out := &argoAPI{}, &reloadtest.Outbox{}
	actions, s, in := dueRollout(t, c, out, "abc")
	verdict := policy.Assess(in).Verdict
	require.Equal(t, policy.Reload, verdict.Action)
	result := actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base)
	assert.Zero(t, result)
	require.Len(t, c.patches, 1)
	p := c.patches[0]
	assert.Equal(t, "7", p.Metadata.ResourceVersion)
	assert.Equal(t, map[string]any{"restartAt": "2026-01-02T03:04:06Z"}, p.Spec, "creation times of pods have no fractions")
	known := policy.KnownOf("abc", p.Metadata.Annotations[annotation.DefaultPrefix+"config-record"])
	in.Known = known
	assert.Equal(t, policy.Nothing, policy.Assess(in).Verdict.Action, "the pods are known to start with what is there")
	last, err := record.ParseLastReload(p.Metadata.Annotations[annotation.DefaultPrefix+"last-reload"])
	require.NoError(t, err)
	assert.Equal(t, "abc", last.Hash)
	assert.Equal(t, []record.Change{{Ref: "configmap/app", Type: record.Created}}, last.Changes)
	assert.Equal(t, []string{"restarted: configmap/app created"}, out.Notes())
	requireContest(t, actions, s)
}

// The watch shows the restart, to this leader or to its successor.
func TestRestartIsReportedAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"by the same leader": false, "by the next one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out := &argoAPI{lost: errors.New("the connection is lost")}, &reloadtest.Outbox{}
			actions, s, in := dueRollout(t, c, out, "abc")
			assert.Positive(t, actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base).RequeueAfter)
			require.Len(t, c.patches, 1)
			assert.Empty(t, out.Notes())
			if later {
				actions, s, _ = dueRollout(t, c, out, "abc")
			}
			s.View.Managed[stamp.LastReload] = c.patches[0].Metadata.Annotations[annotation.DefaultPrefix+"last-reload"]
			actions.events.EmitReloads(s.Reported())
			assert.Equal(t, []string{"restarted: configmap/app created"}, out.Notes())
		})
	}
}

// The clock of this process is behind that of the API server, which has created the Rollout a moment ago.
func TestRestartIsNotDatedBeforeTheCreation(t *testing.T) {
	t.Parallel()
	c := &argoAPI{}
	actions, s, in := dueRollout(t, c, &reloadtest.Outbox{}, "abc")
	created := actions.now().Add(time.Minute).Truncate(time.Second)
	view, _ := actions.gather.Reader.ReadSummary(reloadtest.Summary(rolloutKind(), map[string]any{
		"metadata": map[string]any{"creationTimestamp": created.Format(time.RFC3339)},
	}))
	view.Intent, view.Managed = s.View.Intent, s.View.Managed
	s.View = view
	actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
	require.Len(t, c.patches, 1)
	last, err := record.ParseLastReload(c.patches[0].Metadata.Annotations[annotation.DefaultPrefix+"last-reload"])
	require.NoError(t, err)
	assert.Equal(t, created, last.Time)
}

// requireContest requires that a write of the Record of a workload was noted: with two more, each undone by another writer, the next
// one waits.
func requireContest(t *testing.T, a *Actions, s gather.Subject) {
	t.Helper()
	before, contests := s.View.Managed[stamp.Record], &a.state.Contests
	for range 2 {
		require.Zero(t, contests.Wait(s.Key, before, a.now()))
		contests.Wrote(s.Key, before, a.now())
	}
	require.Positive(t, contests.Wait(s.Key, before, a.now()))
}

// The pods start with what is stored, whatever the watch has seen: recorded with an older content, they would restart once more.
func TestRestartRecordsTheLiveConfiguration(t *testing.T) {
	t.Parallel()
	app, ring := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, digesttest.Ring(t, "a")
	state := func(content, version string) digest.State {
		object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
		object.Namespace, object.Name = "shop", "app"
		return digest.StateOf(digest.OfConfigMap(object), "uid", version, ring)
	}
	for name, tc := range map[string]struct {
		live     digest.State
		err      error
		restarts int
	}{
		"what the watch has seen":          {live: state("seen", "1"), restarts: 1},
		"changed again":                    {live: state("newer", "2"), restarts: 1},
		"changed back":                     {live: digest.State{Absent: true}},
		"the configuration cannot be read": {err: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &argoAPI{}
			actions, s, in := dueRollout(t, c, &reloadtest.Outbox{}, "abc")
			in.Current[app] = state("seen", "1")
			store := actions.gather.Store.(*reloadtest.Store)
			store.States, store.Err = map[reference.Ref]digest.State{app: tc.live}, tc.err
			result := actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
			require.Len(t, c.patches, tc.restarts)
			assert.Equal(t, tc.restarts == 0, result.RequeueAfter > 0, "tried again")
			if tc.restarts > 0 {
				in.Known = policy.KnownOf("abc", c.patches[0].Metadata.Annotations[annotation.DefaultPrefix+"config-record"])
				in.Current = store.States
				assert.Equal(t, policy.Nothing, policy.Assess(in).Verdict.Action, "the pods are known to start with what is stored")
			}
		})
	}
}

// Where the annotations are almost full, the explanation gives way to the Record, without which the restart would be repeated.
func TestRestartFitsIntoFullAnnotations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		less int
		want []string
		note string
	}{
		"nothing is shortened": {want: []string{"configmap/app created"}, note: "restarted: configmap/app created"},
		"no names":             {less: 30, note: "restarted: changes whose names do not fit into the annotations: 1"},
		"no budget":            {less: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out := &argoAPI{}, &reloadtest.Outbox{}
			actions, s, in := dueRollout(t, c, out, "abc")
			verdict := policy.Assess(in).Verdict
			s.View.WorkloadBudget = 1 << 17
			rec, err := policy.NewRecord(in, s.View.Managed[stamp.Hash], true)
			require.NoError(t, err)
			restart, _, fits := s.View.NewRestart(rec, verdict.Changes, actions.now())
			require.True(t, fits, "there is enough space for both annotations")
			s.View.WorkloadBudget = len(restart[stamp.Record]) + len(restart[stamp.LastReload]) - tc.less
			actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base)
			if tc.note == "" {
				assert.Empty(t, c.patches, "a restart that is not recorded would be repeated")
				return
			}
			require.Len(t, c.patches, 1)
			stored, err := record.ParseLastReload(c.patches[0].Metadata.Annotations[annotation.DefaultPrefix+"last-reload"])
			require.NoError(t, err)
			var names []string
			for _, change := range stored.Changes {
				names = append(names, change.String())
			}
			assert.Equal(t, tc.want, names)
			assert.Equal(t, []string{tc.note}, out.Notes())
		})
	}
}

// A replica of an earlier version restores the Record where it sees a newer configuration. The pods restart all the same: each restart
// is reported, and the reload stays due. It is repeated ever later: what drops the Record may do so for good.
func TestRestartThatIsNotRecordedIsReportedAndRepeatedEverLater(t *testing.T) {
	t.Parallel()
	c, out := &argoAPI{restores: true}, &reloadtest.Outbox{}
	actions, s, in := dueRollout(t, c, out, "abc")
	wait := func() time.Duration {
		return actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base).RequeueAfter
	}
	first := wait()
	assert.Positive(t, first)
	require.Len(t, out.Notes(), 2)
	assert.Equal(t, "restarted: configmap/app created", out.Notes()[0])
	assert.Contains(t, out.Notes()[1], "was not stored, so that the pods are restarted again")
	assert.Equal(t, actions.now(), actions.state.Writes.StampedAt(s.Key), "the refractory time begins")
	deferred := func() time.Duration { return actions.state.Deferrals.Wait(s.Key, s.Events.Last, actions.now()) }
	assert.Equal(t, first, deferred(), "the event of the write does not end the wait")
	assert.Greater(t, wait(), first)
	assert.Greater(t, deferred(), first)
}

func TestRestartIsExplainedByALastReloadOfItsOwn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, after := reloadtest.ReloadAt(now.Add(-time.Hour), "abc"), reloadtest.ReloadAt(now, "abc")
	actions := newActions(Options{Gather: gather.Gatherer{Reader: reloadtest.Reader()}}, &reloadtest.Outbox{})
	for name, tc := range map[string]struct {
		stored string
		want   bool
	}{
		"its own":             {after.String(), true},
		"that of before":      {before.String(), false},
		"none":                {"", false},
		"one of another form": {"yesterday", false},
	} {
		answer := &metav1.PartialObjectMetadata{}
		answer.SetAnnotations(map[string]string{annotation.DefaultPrefix + "last-reload": tc.stored})
		last, explained := actions.restarts.explained(reloadtest.Reloaded(reloadtest.Web(t), before), answer)
		assert.Equal(t, tc.want, explained, name)
		if tc.want {
			assert.Equal(t, after, last, name)
		}
	}
}

// ruledAPI is argoAPI with a webhook, which may read another configuration than the loop.
type ruledAPI struct {
	argoAPI
	reader stamp.Reader
	old    map[string]any
	live   stamp.Inputs
}

func (a *ruledAPI) Patch(ctx context.Context, answer client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := a.argoAPI.Patch(ctx, answer, patch, opts...); err != nil {
		return err
	}
	old, written := &unstructured.Unstructured{Object: a.old}, a.patches[len(a.patches)-1]
	current := old.DeepCopy()
	annotations := old.GetAnnotations()
	maps.Copy(annotations, written.Metadata.Annotations)
	current.SetAnnotations(annotations)
	if err := unstructured.SetNestedField(current.Object, written.Spec["restartAt"], "spec", "restartAt"); err != nil {
		return err
	}
	kind := rolloutKind()
	request, _ := a.reader.NewWrite(&workload.Object{Kind: kind, Raw: a.old}, workload.Object{Kind: kind, Raw: current.Object})
	decided := stamp.Choose(request).Apply(request, a.live).Managed
	annotations[a.reader.Keys.ConfigRecord], annotations[a.reader.Keys.LastReload] = decided[stamp.Record], decided[stamp.LastReload]
	if annotations[a.reader.Keys.LastReload] == "" {
		delete(annotations, a.reader.Keys.LastReload)
	}
	answer.SetAnnotations(annotations)
	return nil
}

// Under constant change the webhook always reads another configuration than the loop: each restart is explained and recorded all the same.
func TestRestartIsExplainedWithWhatTheWebhookReads(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	c, out := &ruledAPI{reader: reloadtest.Reader()}, &reloadtest.Outbox{}
	actions, s, in := dueRollout(t, c, out, "abc")
	object := &corev1.ConfigMap{Data: map[string]string{"key": "newer"}}
	object.Namespace, object.Name = "shop", "app"
	newer := digest.StateOf(digest.OfConfigMap(object), "uid", "2", in.Ring)
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	there := digest.StateOf(digest.Content{Ref: db, Namespace: "shop"}, "uid", "1", in.Ring)
	c.live = stamp.Inputs{States: map[reference.Ref]digest.State{app: newer, db: there}, Ring: in.Ring, Namespace: "shop", Now: actions.now()}
	c.old = map[string]any{
		"metadata": map[string]any{"generation": s.Object.Generation(), "annotations": map[string]any{
			c.reader.Keys.ConfigMaps: "app", c.reader.Keys.Secrets: "db", c.reader.Keys.ConfigRecord: s.View.Managed[stamp.Record] + ",secret/db=-",
		}},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{c.reader.Keys.ConfigHash: "abc"}}}},
	}
	ended := actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict)
	require.IsType(t, reloaded{}, ended)
	assert.Zero(t, ended.close(t.Context(), actions.base), "nothing is left to do")
	assert.Equal(t, []string{"restarted: configmap/app created, secret/db created"}, out.Notes())
	require.Len(t, c.patches, 1)
	requireContest(t, actions, s)
}

// A template that was never stamped stays as it is, too: the Record belongs to no hash, and so does the explanation.
func TestRolloutWithoutAStampIsRestarted(t *testing.T) {
	t.Parallel()
	for _, webhook := range []bool{true, false} {
		c, out := &argoAPI{}, &reloadtest.Outbox{}
		actions, s, in := dueRollout(t, c, out, "-")
		actions.webhook = webhook
		actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
		require.Len(t, c.patches, 1)
		p := c.patches[0]
		assert.Equal(t, map[string]any{"restartAt": "2026-01-02T03:04:06Z"}, p.Spec)
		assert.NotContains(t, p.Metadata.Annotations, annotation.DefaultPrefix+"config-hash", "no reload is requested")
		in.Known = policy.KnownOf("", p.Metadata.Annotations[annotation.DefaultPrefix+"config-record"])
		assert.Equal(t, policy.Nothing, policy.Assess(in).Verdict.Action, "the pods are known to start with what is there")
		s.View.Managed[stamp.LastReload] = p.Metadata.Annotations[annotation.DefaultPrefix+"last-reload"]
		last, ok := s.View.Managed.LastReload(actions.now())
		require.True(t, ok, "the refractory time counts from it")
		assert.Equal(t, []record.Change{{Ref: "configmap/app", Type: record.Created}}, last.Changes)
		s.Object = reloadtest.Summary(s.Object.Kind, map[string]any{"metadata": map[string]any{"uid": "u1", "resourceVersion": "8", "generation": int64(4)}})
		actions.ReportLostStamp(s)
		assert.Equal(t, []string{"restarted: configmap/app created"}, out.Notes(), "no stamp is missed")
	}
}
