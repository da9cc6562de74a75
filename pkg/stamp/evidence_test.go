package stamp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Each condition alone keeps what is recorded.
func TestStartedWithoutAnOptionalObjectWhoseCreationRestarts(t *testing.T) {
	t.Parallel()
	type given struct {
		recorded, absent, there, required bool
		trigger                           annotation.Trigger
	}
	created := annotation.Trigger{OnCreate: true}
	for name, c := range map[string]struct {
		given
		sameTemplate, want bool
	}{
		"it was deleted":                {given: given{recorded: true, trigger: created}, want: true},
		"no pods start":                 {given: given{recorded: true, trigger: created}, sameTemplate: true},
		"it was not recorded":           {given: given{trigger: created}},
		"it was recorded as absent":     {given: given{recorded: true, absent: true, trigger: created}},
		"it is there":                   {given: given{recorded: true, there: true, trigger: created}},
		"pods cannot start without it":  {given: given{recorded: true, required: true, trigger: created}},
		"its creation restarts nothing": {given: given{recorded: true}},
		"its deletion restarts":         {given: given{recorded: true, trigger: annotation.Trigger{OnCreate: true, OnDelete: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := cm("a")
			items := map[reference.Ref]record.Item{}
			if c.recorded {
				items[a] = record.Item{Entry: "9a0c4f1122334455"}
			}
			if c.absent {
				items[a] = record.Item{}
			}
			now := tracking("a")
			now.Intent.Tracked[a], now.Required = c.trigger, map[reference.Ref]bool{a: c.required}
			f := &facts{
				Write: Write{TemplateChanged: !c.sameTemplate, New: now},
				live:  live{policy.Input{Refs: []reference.Ref{a}, Current: map[reference.Ref]digest.State{a: {Absent: !c.there}}}},
			}
			got := f.startedWithout(policy.Known{Hash: someHash, Record: record.New(someHash, someKey, items)})
			if c.want {
				assert.Equal(t, []reference.Ref{a}, got)
			} else {
				assert.Empty(t, got)
			}
		})
	}
}

// A Job that was made again reports its reload with a new Record: it must be of this write, or of about now.
func TestReloadWithoutAStampIsOfThisWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		generation int64
		after      time.Duration // the creation
		clock      time.Duration // behind the reload
		content    string
		want       bool
	}{
		"of this version, after the creation":     {generation: 3, after: time.Hour, clock: time.Hour, want: true},
		"of this version, before the creation":    {generation: 3, after: -time.Hour, clock: 2 * time.Hour},
		"of another version, after the creation":  {generation: 2, after: time.Hour, clock: time.Hour},
		"of another version, of about now":        {generation: 2, after: time.Hour, clock: time.Second, want: true},
		"of this version, with another content":   {generation: 3, after: time.Hour, clock: time.Hour, content: "another"},
		"of about now, before the creation":       {generation: 2, after: -time.Second, clock: time.Second, want: true},
		"of another version, before the creation": {generation: 2, after: -time.Hour, clock: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := digesttest.Ring(t, "1")
			key, _ := ring.Newest()
			state := func(content string) digest.State {
				return digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"key": content}}), "", "7", ring)
			}
			item, read := record.ItemOf(key.ID, state(c.content))
			require.True(t, read, "the state has an Entry under the newest key")
			last := record.LastReload{Time: someTime.Add(c.after), Hash: someHash, Generation: c.generation, Cause: record.CauseConfigChange}
			f := &facts{
				Write: Write{
					Old: View{Generation: 3, created: someTime, Managed: Managed{Hash: someHash}},
					New: View{Managed: Managed{
						Hash: someHash, LastReload: last.String(),
						Record: record.New(someHash, key.ID, map[reference.Ref]record.Item{cm("a"): item}).String(),
					}},
				},
				now:  someTime.Add(c.after).Add(c.clock),
				live: live{policy.Input{Refs: []reference.Ref{cm("a")}, Ring: ring, Current: map[reference.Ref]digest.State{cm("a"): state("")}}},
			}
			assert.Equal(t, c.want, f.reloadedWithoutStamp())
		})
	}
}

// Without an explanation it is not known that a restart is one by the loop.
func TestRestartWithoutAReadableExplanationIsOneOfAUser(t *testing.T) {
	t.Parallel()
	w := rollout(t)
	restarted := func(at any) workload.Object {
		raw := w.stored
		o := workload.Object{Kind: w.kind, Raw: map[string]any{"metadata": raw["metadata"], "spec": map[string]any{}}}
		if at != nil {
			o.Raw["spec"].(map[string]any)["restartAt"] = at
		}
		return o
	}
	old := View{Intent: annotation.Intent{Restart: true}, Managed: Managed{LastReload: "{"}}
	ended := func() bool {
		req := Write{Old: old}
		req.readEndOfRestart(restarted("2026-01-01T00:00:00Z"), restarted(nil))
		return req.EndsRestart
	}
	assert.False(t, ended(), "last-reload is not readable")
	last := record.LastReload{Time: someTime.Add(-time.Minute), Hash: someHash, Cause: record.CauseConfigChange, Restarted: true}
	old.Managed[LastReload] = last.String()
	assert.True(t, ended(), "the same with one that can be read")
}

// What replaces all pods anyway needs no generation on the template.
func TestEndOfARestartByAWriteThatReplacesThePodsHasNoGeneration(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*world, map[string]any){
		"lists are edited":     func(w *world, raw map[string]any) { annotate(raw, w.keys.Secrets, "a,b") },
		"the template changes": release,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.restartNow()
			before := w.managed()
			require.Nil(t, w.write(func(raw map[string]any) {
				delete(raw["spec"].(map[string]any), "restartAt")
				write(w, raw)
			}))
			assert.Equal(t, before[Restart], w.managed()[Restart])
		})
	}
}
