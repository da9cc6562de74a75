package action

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// accepting is a client whose patches of annotations are stored, unless a webhook drops them, or keeps another Record.
type accepting struct {
	client.Client
	drops  bool
	keeps  string
	writes int
}

func (c *accepting) Patch(_ context.Context, answer client.Object, patch client.Patch, _ ...client.PatchOption) error {
	c.writes++
	body, err := patch.Data(answer)
	if err != nil {
		return err
	}
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	switch {
	case c.keeps != "":
		sent.Annotations = map[string]string{annotation.DefaultKeys().ConfigRecord: c.keeps}
	case c.drops:
		sent.Annotations = nil
	}
	answer.SetAnnotations(sent.Annotations)
	answer.SetResourceVersion("7")
	return nil
}

func TestAdoptionIsReportedAndCounted(t *testing.T) {
	t.Parallel()
	const soon = 25 * time.Millisecond
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lost, _ := digesttest.Ring(t, "b").Newest()
	newest, _ := digesttest.Ring(t, "a").Newest()
	hash, err := digest.Hash(newest.ID, map[reference.Ref]digest.State{{Kind: reference.ConfigMap, Name: "app"}: {Absent: true}})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		api     accepting
		stored  string
		hash    string // written by hand
		foreign bool
		// reloaded: the workload has a last-reload. revision is --hash=revision.
		reloaded, revision bool
		// proven says that the config-hash is that of the current configuration.
		proven bool
		// again says that the key was taken over before.
		again  bool
		budget int
		// notify and restart say that changes are reported only, or restart pods without a new template.
		notify, restart bool
		// attempts are those that have failed before.
		attempts int
		note     string
		adopted  bool
		// wait is how long no config event leads to the next attempt.
		wait time.Duration
	}{
		"nothing is recorded":           {budget: 1000, adopted: true},
		"the key of the Record is lost": {budget: 1000, foreign: true, note: string(lost.ID) + " of the config-record is lost", adopted: true},
		"the key was taken over before": {budget: 1000, foreign: true, again: true, note: "this installation does not have the digest key", wait: time.Second},
		"the Record is no Record":       {budget: 1000, stored: "v1:by hand", note: "config-record was damaged (read config record: it is not of the form", adopted: true},
		"the key of the hash is lost": {
			budget: 1000, hash: digest.HashRecorded(lost.ID, nil), reloaded: true, adopted: true,
			note: "the digest key " + string(lost.ID) + " of the config-hash is lost, or the config-hash is another program's: the current configuration is adopted",
		},
		"the key of the hash is lost, beside a Record": {
			budget: 1000, hash: digest.HashRecorded(lost.ID, nil), stored: record.New("another", "", nil).String(), adopted: true, note: "of the config-hash is lost",
		},
		"SAP's program has stamped it":    {budget: 1000, hash: digest.HashRecorded(lost.ID, nil), adopted: true},
		"the hash is a revision digest":   {budget: 1000, hash: digest.HashRecorded(lost.ID, nil), reloaded: true, revision: true, adopted: true},
		"the hash is no hash":             {budget: 1000, hash: "by hand", note: `config-hash was damaged ("by hand" is not 64 hexadecimal digits): the current`, adopted: true},
		"a Record belongs to the hash":    {budget: 1000, hash: "by hand", stored: record.New("by hand", "", nil).String(), adopted: true},
		"another Record is beside it":     {budget: 1000, hash: "by hand", stored: record.New("another", "", nil).String(), note: `config-hash was damaged ("by hand"`, adopted: true},
		"the hash proves what is lost":    {budget: 1000, stored: "v1:by hand", proven: true, note: "): it is written again, and the config-hash proves that no change is missed", adopted: true},
		"there is no budget for a Record": {budget: 10, note: "changes are not acted on until the config-record is stored"},
		"nor is there, beside a hash":     {budget: 10, stored: "v1:by hand", proven: true, note: "a change still restarts the pods"},
		"changes are to be reported":      {budget: 10, stored: "v1:by hand", proven: true, notify: true, note: "changes are not acted on"},
		"the template stays as it is":     {budget: 10, stored: "v1:by hand", proven: true, restart: true, note: "changes are not acted on"},
		"the webhook sees another state":  {api: accepting{drops: true}, budget: 1000, wait: soon},
		"another webhook removes the Record": {
			api: accepting{drops: true}, budget: 1000, attempts: state.Persistent, wait: time.Second,
			note: "the config-record is not stored: changes are not acted on until the config-record is stored; make the admission webhook",
		},
		"another webhook removes it beside a hash": {
			api: accepting{drops: true}, budget: 1000, stored: "v1:by hand", proven: true, attempts: state.Persistent, wait: time.Second,
			note: "the config-record is not stored: a change still restarts the pods, but its cause cannot be named; make",
		},
		"another webhook removes that of a lost key": {
			api: accepting{drops: true}, budget: 1000, foreign: true, attempts: state.Persistent, note: "the config-record is not stored", wait: time.Second,
		},
		"the webhook has another key still": {
			api: accepting{drops: true, keeps: "v1:-::"}, budget: 1000, attempts: state.Persistent, note: "the webhook did not accept the config-record", wait: time.Second,
		},
		"the webhook sees another state, without the key": {api: accepting{drops: true}, budget: 1000, foreign: true, wait: soon},
		"another installation restores its Record": {
			api:    accepting{drops: true, keeps: recordOf(digesttest.Ring(t, "b"), "-")},
			budget: 1000, foreign: true, attempts: state.Persistent, note: "this installation does not have the digest key", wait: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, registry := &reloadtest.Outbox{}, prometheus.NewRegistry()
			actions := newActions(Options{Client: &tc.api, Gather: absentApp(t, nil, digesttest.Ring(t, "a"), now), Metrics: registry}, out)
			s := reloadtest.Web(t)
			s.View.WorkloadBudget, s.View.Intent.Restart, actions.gather.NotifyOnly = tc.budget, tc.restart, tc.notify
			if tc.stored != "" {
				s.View.Managed[stamp.Record] = tc.stored
			}
			if tc.hash != "" {
				s.View.Managed[stamp.Hash] = tc.hash
			}
			if tc.reloaded {
				s.View.Managed[stamp.LastReload] = record.LastReload{}.String()
			}
			actions.gather.Revision = tc.revision
			if tc.proven {
				s.View.Managed[stamp.Hash] = hash
			}
			if tc.foreign {
				s.View.Managed[stamp.Record] = recordOf(digesttest.Ring(t, "b"), "-")
			}
			if tc.again {
				actions.state.Takeovers.Record(s.Key, lost.ID, "6")
			}
			for range tc.attempts {
				actions.backoff.When(s.Key, state.Soon)
			}
			in := actions.gather.Input(s)
			require.NoError(t, actions.gather.Read(t.Context(), s, in, in.Refs))
			actions.Adopt(t.Context(), s, in, policy.Assess(in)).close(t.Context(), actions.base)
			if tc.note == "" {
				assert.Empty(t, out.Notes())
			} else if assert.Len(t, out.Notes(), 1) {
				assert.Contains(t, out.Notes()[0], tc.note)
			}
			assert.Equal(t, !tc.foreign || tc.api.drops, actions.state.Takeovers.Allowed(s.Key, lost.ID))
			assert.Equal(t, tc.wait, actions.state.Deferrals.Wait(s.Key, now.Add(time.Millisecond), now), "also after an event")
			count, failures := 0.0, 1.0
			if tc.adopted {
				count, failures = 1, 0
			} else if !tc.api.drops || tc.foreign && tc.api.keeps != "" {
				failures = 0
			}
			assert.InDelta(t, count, testutil.ToFloat64(actions.metrics.adoptions.WithLabelValues("Deployment")), 0)
			assert.InDelta(t, failures, testutil.ToFloat64(actions.metrics.failures.WithLabelValues(reasonAdoptionFailed)), 0)
		})
	}
}

// The only digest key is replaced: all workloads are looked at before the graph has read its custom resources with the new one.
func TestAdoptionBeforeTheNewKeyIsInUseIsRepeatedWithoutAnEvent(t *testing.T) {
	t.Parallel()
	app, now := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := func(keys string) digest.State {
		return digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "5", digesttest.Ring(t, keys))
	}
	out, api := &reloadtest.Outbox{}, &accepting{}
	source, store := absentApp(t, nil, digesttest.Ring(t, "a"), now), &reloadtest.Store{States: map[reference.Ref]digest.State{app: read("b")}}
	source.Store = store
	actions, s := newActions(Options{Client: api, Gather: source, Metrics: prometheus.NewRegistry()}, out), reloadtest.Web(t)
	s.View.WorkloadBudget = 1000
	adopt := func() {
		t.Helper()
		in := actions.gather.Input(s)
		require.NoError(t, actions.gather.Read(t.Context(), s, in, in.Refs))
		actions.Adopt(t.Context(), s, in, policy.Assess(in)).close(t.Context(), actions.base)
		assert.Empty(t, out.Notes(), "the user can do nothing about it")
	}
	adopt()
	assert.Zero(t, api.writes)
	assert.Equal(t, 25*time.Millisecond, actions.state.Deferrals.Wait(s.Key, now.Add(time.Millisecond), now), "also after an event")

	store.States[app] = read("a")
	adopt()
	assert.Equal(t, 1, api.writes)
}

// appeared is a Store with an object whose creation was seen.
type appeared struct {
	reloadtest.Store
	version string
}

func (a *appeared) Created(string, reference.Ref) string { return a.version }

// What has changed since the pods started is looked at once its earlier state is adopted.
func TestAdoptionOfAnEarlierStateIsFollowedByALook(t *testing.T) {
	t.Parallel()
	ring, app := digesttest.Ring(t, "a"), reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(version string) digest.State {
		return digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", version, ring)
	}
	for name, tc := range map[string]struct {
		// born is the version at which the workload was created, since the one that its pods have started with.
		born, since string
		want        time.Duration
	}{
		"nothing has changed":               {},
		"an object has changed":             {born: "5", want: time.Second},
		"an object has appeared":            {since: "5", want: time.Second},
		"the workload is newer than either": {born: "7", since: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gathered := absentApp(t, nil, ring, now)
			gathered.Store = &appeared{reloadtest.Store{States: map[reference.Ref]digest.State{app: at("6")}}, "6"}
			gathered.Past = func(context.Context, string, reference.Ref, string) (digest.State, error) { return at("4"), nil }
			api := &accepting{}
			actions := newActions(Options{Client: api, Gather: gathered}, &reloadtest.Outbox{})
			s := reloadtest.Web(t)
			s.View.WorkloadBudget = 1000
			s.View.Intent.Tracked[app] = annotation.Trigger{OnCreate: true, OnAppear: true}
			if tc.born != "" {
				actions.state.Creations.Created(s.Key, tc.born)
			}
			if tc.since != "" {
				actions.state.Versions.Changed(s.Key, tc.since)
			}
			in := actions.gather.Input(s)
			require.NoError(t, actions.gather.Read(t.Context(), s, in, in.Refs))
			assert.Equal(t, tc.want, actions.Adopt(t.Context(), s, in, policy.Assess(in)).close(t.Context(), actions.base).RequeueAfter)
			assert.Equal(t, 1, api.writes)
		})
	}
}

// Nothing is kept of an attempt after which nothing is due: the next change is a new beginning.
func TestNothingIsKeptOfWhatIsInOrder(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, ended := range map[string]func(s gather.Subject) Outcome{
		"in order":          func(s gather.Subject) Outcome { return InOrder{s} },
		"but for a removal": func(s gather.Subject) Outcome { return inOrderUntil{InOrder{s}, time.Minute} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
			s := reloadtest.Web(t)
			actions.state.Due.Add(s.Key, now)
			actions.state.ReferentWaits.Wait(s.Key, now.Add(-time.Hour))
			actions.state.Deferrals.Defer(s.Key, state.Deferral{Until: now.Add(time.Minute), IgnoresEvents: true})
			first := actions.backoff.When(s.Key, state.Soon)
			ended(s).close(t.Context(), actions.base)
			_, due := actions.state.Due.Oldest()
			assert.Zero(t, due)
			_, unread := actions.state.ReferentWaits.Wait(s.Key, now)
			assert.Positive(t, unread, "it waits anew")
			assert.Zero(t, actions.state.Deferrals.Wait(s.Key, now, now))
			assert.Equal(t, first, actions.backoff.When(s.Key, state.Soon), "the pauses begin anew")
		})
	}
}

func TestDurationOfAReloadIsCountedWhereItsEventIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	registry := prometheus.NewRegistry()
	actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Metrics: registry}, &reloadtest.Outbox{})
	s := reloadtest.Web(t)
	for range 2 {
		reloaded{s, nil, reloadtest.ReloadAt(now, "abc"), 2}.close(t.Context(), actions.base)
		s.Events.First = now.Add(-2 * time.Second)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "pod_reloader_reload_duration_seconds" {
			require.Len(t, f.GetMetric(), 1)
			assert.Equal(t, uint64(1), f.GetMetric()[0].GetHistogram().GetSampleCount())
			assert.InDelta(t, 2.0, f.GetMetric()[0].GetHistogram().GetSampleSum(), 0)
			return
		}
	}
	assert.Fail(t, "there is no duration")
}
