package cronrun_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

var (
	app    = reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	listed = reference.Ref{Kind: reference.ConfigMap, Name: "listed"}
	other  = reference.Ref{Kind: reference.Secret, Name: "other"}
)

// intent runs a CronJob at once for configmap/app, and for nothing else that it tracks.
func intent() annotation.Intent {
	return annotation.Intent{Tracked: map[reference.Ref]annotation.Trigger{app: {AtOnce: true}, listed: {}, other: {}}}
}

func modified(refs ...reference.Ref) []policy.Change {
	changes := make([]policy.Change, 0, len(refs))
	for _, ref := range refs {
		changes = append(changes, policy.Change{Ref: ref, Type: policy.Modified})
	}
	return changes
}

func statesOf(ring digest.Ring, contents map[reference.Ref]string) map[reference.Ref]digest.State {
	states := map[reference.Ref]digest.State{other: {Absent: true}}
	for ref, content := range contents {
		object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
		object.Namespace, object.Name = "shop", ref.Name
		states[ref] = digest.StateOf(digest.OfConfigMap(object), "uid", content, ring)
	}
	return states
}

func TestIsDue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind    workload.Kind
		changes []policy.Change
		want    bool
	}{
		"what runs it has changed":          {kind: workload.CronJob(), changes: modified(other, app), want: true},
		"what stamps only has changed":      {kind: workload.CronJob(), changes: modified(other)},
		"any tracked object may be changed": {kind: workload.CronJob(), changes: modified(policy.Any), want: true},
		"another kind":                      {kind: workload.Deployment(), changes: modified(app)},
	} {
		assert.Equal(t, tc.want, cronrun.IsDue(tc.kind, intent(), tc.changes), name)
	}
	union := annotation.Trigger{OnCreate: true, OnDelete: true, AtOnce: true}
	flags := annotation.Trigger{OnCreate: true, OnDelete: true, AtOnce: true, AtOnceOnCreate: true, AtOnceOnDelete: true}
	for _, tc := range []struct {
		trigger annotation.Trigger
		change  policy.ChangeType
		want    bool
	}{
		{union, policy.Modified, true},
		{union, policy.Created, false},
		{union, policy.Deleted, false},
		{union, record.Unlisted, true},
		{flags, policy.Modified, true},
		{flags, policy.Created, true},
		{flags, policy.Deleted, true},
	} {
		both := annotation.Intent{Tracked: map[reference.Ref]annotation.Trigger{app: tc.trigger}}
		changes := []policy.Change{{Ref: app, Type: tc.change}}
		assert.Equal(t, tc.want, cronrun.IsDue(workload.CronJob(), both, changes), "%s: our lists run nothing at once, with %+v", tc.change, tc.trigger)
	}
	none := annotation.Intent{Tracked: map[reference.Ref]annotation.Trigger{app: {}}}
	assert.False(t, cronrun.IsDue(workload.CronJob(), none, modified(policy.Any)), "nothing runs it at once")
}

// What is tracked without running the CronJob is part of the hash, but its changes make no other run.
func TestContentOfARunIsWhatRunsTheCronJob(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	view := stamp.View{Intent: intent()}
	runWith := func(ofApp, ofListed string) cronrun.Run {
		t.Helper()
		states := statesOf(ring, map[reference.Ref]string{app: ofApp, listed: ofListed})
		due, err := cronrun.Of(view, ring, states)
		require.NoError(t, err)
		rec, err := policy.NewRecord(policy.Input{
			Namespace: "shop", Intent: view.Intent, Refs: view.Intent.Refs(), Current: states, Ring: ring,
		}, due.Hash, false)
		require.NoError(t, err)
		text, _ := rec.Text(record.MaxSize)
		stamped := view
		last := policy.NewLastReload(nil, at.Add(time.Minute), view.Managed[stamp.LastReload])
		last.Hash = due.Hash
		stamped.Managed = stamp.Managed{stamp.Hash: due.Hash, stamp.Record: text, stamp.LastReload: last.String()}
		assert.Equal(t, cronrun.Recorded(view).Content, due.Replaces)
		want := due
		want.Replaces = ""
		assert.Equal(t, want, cronrun.Recorded(stamped), "the Record and the last reload of the stamp have the same")
		return due
	}
	one := runWith("1", "1")
	view.Managed = stamp.Managed{stamp.LastReload: record.LastReload{Time: at, Hash: "0"}.String()}
	assert.Equal(t, "2026-01-02T03:04:05.006Z 0", runWith("1", "1").Follows)
	view.Managed = nil
	for name, tc := range map[string]struct {
		due           cronrun.Run
		hash, content bool
	}{
		"nothing":                      {due: runWith("1", "1"), hash: true, content: true},
		"what stamps the CronJob only": {due: runWith("1", "2"), content: true},
		"what runs it":                 {due: runWith("2", "1")},
	} {
		assert.Equal(t, tc.hash, tc.due.Hash == one.Hash, name+" has changed")
		assert.Equal(t, tc.content, tc.due.Content == one.Content, name+" has changed")
	}

	_, err := cronrun.Of(view, digest.Ring{}, nil)
	require.ErrorIs(t, err, digest.ErrNoKey)
	_, err = cronrun.Of(view, ring, nil)
	require.ErrorContains(t, err, "has not been read")
	_, err = cronrun.Of(view, ring, map[reference.Ref]digest.State{other: {Absent: true}, listed: {Absent: true}})
	require.ErrorContains(t, err, "configmap/app")

	view.Managed = stamp.Managed{stamp.Hash: one.Hash}
	assert.Equal(t, cronrun.Run{Hash: one.Hash, Content: one.Hash}, cronrun.Recorded(view), "without a Record, any change is another run")
	assert.Equal(t, string(newest.ID), one.Content[:len(newest.ID)])
}

// A digest key that is rotated between the Job and the stamp makes it no other run.
func TestRunIsTheSameUnderARotatedKey(t *testing.T) {
	t.Parallel()
	old, rotated := digesttest.Ring(t, "a"), digesttest.Ring(t, "ab")
	run := func(ring digest.Ring, before stamp.Managed, content string) cronrun.Run {
		t.Helper()
		due, err := cronrun.Of(stamp.View{Intent: intent(), Managed: before}, ring, statesOf(ring, map[reference.Ref]string{app: content, listed: "1"}))
		require.NoError(t, err)
		return due
	}
	hash, first := run(old, nil, "1").Hash, "v1:"
	newest, _ := old.Newest()
	first += hash + ":" + string(newest.ID) + ":configmap/app=0123456789abcdef"
	recorded := stamp.Managed{stamp.Hash: hash, stamp.Record: first}
	for name, before := range map[string]stamp.Managed{"Record": recorded, "hash alone": {stamp.Hash: hash}} {
		made, again := run(old, before, "2"), run(rotated, before, "2")
		assert.Equal(t, made.Content, again.Content, name+": the Job has the same name")
		assert.NotEqual(t, made.Hash, again.Hash, name+": the stamp is under the newest key")
		assert.Equal(t, []string{run(rotated, nil, "2").Content}, again.Same, name)
		assert.NotEqual(t, made.Content, run(rotated, before, "3").Content, name+": another content is another run")
	}
	lost := run(digesttest.Ring(t, "b"), recorded, "2")
	assert.Equal(t, run(rotated, nil, "2").Content, lost.Content, "the key of the Record is lost")
	assert.Empty(t, lost.Same)
}

// The webhook stamps what it reads. A change that runs the CronJob may be among it that the loop, whose watch was behind, has not seen.
func TestNeedsAnother(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen    []policy.Change
		stamped []policy.Change
		more    int
		ran     string
		digest  string
		want    bool
	}{
		"both see what stamps only":                 {seen: modified(other), stamped: modified(other)},
		"the webhook sees what runs it, too":        {seen: modified(other), stamped: modified(app, other), want: true},
		"the webhook names not all that it sees":    {seen: modified(other), stamped: modified(other), more: 1, want: true},
		"the webhook sees more of what stamps only": {seen: modified(other), stamped: modified(other, listed)},
		"the webhook names not all that both see":   {seen: modified(other, other), stamped: modified(other), more: 1},
		"the hash alone was known to the webhook":   {seen: modified(other), stamped: modified(policy.Any), want: true},
		"both see what runs it, which must not":     {seen: modified(app), stamped: modified(app)},
		"the Job was made for an older content":     {seen: modified(app), stamped: modified(app), ran: "older", want: true},
		"the Job was made for what is stamped":      {seen: modified(app), stamped: modified(app), ran: "stamped"},
		"an older content, --hash=revision":         {seen: modified(app), stamped: modified(app), ran: "older", digest: "newer", want: true},
		"what is stamped, --hash=revision":          {seen: modified(app), stamped: modified(app), ran: "newer", digest: "newer"},
	} {
		last := policy.NewLastReload(tc.stamped, time.Now(), "")
		last.Hash, last.Digest, last.More = "stamped", tc.digest, tc.more
		var made cronrun.Run
		if tc.ran != "" {
			made = cronrun.Run{Job: "backup-1", Hash: tc.ran}
		}
		assert.Equal(t, tc.want, made.NeedsAnother(workload.CronJob(), intent(), tc.seen, last), name)
	}
}

func TestChangesOfWrite(t *testing.T) {
	t.Parallel()
	changes := []record.Change{{Ref: "configmap/app", Type: record.Modified}, {Ref: "secret/other", Type: record.Listed}}
	unnamed := policy.Change{Ref: policy.Any}
	for name, tc := range map[string]struct {
		cause string
		more  int
		want  []policy.Change
	}{
		"a release":                             {cause: record.CauseRelease, want: modified(app)},
		"a release, some are not named":         {cause: record.CauseRelease, more: 1, want: append(modified(app), unnamed)},
		"an edit of the list":                   {cause: record.CauseListEdit, want: modified(app)},
		"an edit of the list, some not named":   {cause: record.CauseListEdit, more: 1, want: modified(app)},
		"a change that the loop has acted on":   {cause: record.CauseConfigChange},
		"a request of a client with a digest":   {cause: record.CauseVerifiedReload},
		"a cause that this version has not got": {cause: "other", more: 1},
	} {
		assert.Equal(t, tc.want, cronrun.ChangesOfWrite(record.LastReload{Cause: tc.cause, Changes: changes, More: tc.more}), name)
	}
}

func TestChangesOfReload(t *testing.T) {
	t.Parallel()
	changes := []record.Change{{Ref: "configmap/app", Type: record.Modified}}
	for name, tc := range map[string]struct {
		cause string
		more  int
		want  []policy.Change
	}{
		"of the loop":                    {cause: record.CauseConfigChange, want: modified(app)},
		"of the loop, not all are named": {cause: record.CauseConfigChange, more: 1, want: append(modified(app), policy.Change{Ref: policy.Any})},
		"of a release":                   {cause: record.CauseRelease, want: modified(app)},
		"of a client":                    {cause: record.CauseVerifiedReload},
	} {
		assert.Equal(t, tc.want, cronrun.ChangesOfReload(record.LastReload{Cause: tc.cause, Changes: changes, More: tc.more}), name)
	}
}

func TestJobNamesAreThoseOfTheReloadsThatAreKept(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := record.LastReload{Time: at, Hash: "1", Cause: record.CauseConfigChange}
	second := record.LastReload{Time: at.Add(time.Minute), Hash: "2", Cause: record.CauseConfigChange}.After(first)
	c := cronJob("backup", nil)
	view := stamp.View{Managed: stamp.Managed{stamp.LastReload: second.String()}}
	assert.ElementsMatch(t, []string{c.JobName("", "B"), c.JobName(cronrun.NameOf(first), "B"), c.JobName(cronrun.NameOf(second), "B")}, c.JobNames(view, "B"))
	assert.Equal(t, []string{c.JobName("", "B")}, c.JobNames(stamp.View{}, "B"), "there was no reload")
}
