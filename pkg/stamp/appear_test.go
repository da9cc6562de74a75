package stamp

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// patternWorld has a workload that tracks what an expression matches, and configmap/app-1 already.
func patternWorld(t *testing.T, onCreate bool) *world {
	t.Helper()
	w := newWorld(t)
	w.speak(annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: onCreate})
	w.set(cm("app-1"), "x")
	require.Nil(t, w.create(w.manifest(map[string]string{"configmap.reloader.stakater.com/reload": "app-.*"})))
	return w
}

// speak makes a dialect the only one, which knows what config objects there are.
func (w *world) speak(dialect annotation.Dialect) {
	w.reader.Dialects = []annotation.Dialect{dialect}
	w.reader.Objects = func(string) (annotation.Objects, error) {
		objects := annotation.Listed{}
		for ref := range w.configs {
			objects[ref] = annotation.Traits{}
		}
		return objects, nil
	}
}

// recordedAs returns the text of the workload's Record with another state of a config object.
func (w *world) recordedAs(ref reference.Ref, present bool) string {
	w.t.Helper()
	view := w.view()
	in := policy.Input{Intent: view.Intent, Known: view.Known(), Ring: w.ring, Current: w.states(view.Intent.Refs())}
	a := policy.Assess(in)
	if !present {
		in.Current[ref] = digest.State{Absent: true}
	}
	rec, err := a.Adopt(in, view.Managed[Hash])
	require.NoError(w.t, err)
	text, fits := rec.Text(record.MaxSize)
	require.True(w.t, fits, "the Record fits into its largest size")
	return text
}

// What the loop has seen appear it records as absent. The webhook lets that stand for what was unknown and can trigger by its creation
// only, and leaves such an object to the loop unless the pods are replaced anyway.
func TestObjectThatAppears(t *testing.T) {
	t.Parallel()
	appeared := cm("app-2")
	record2 := func(w *world) (item record.Item, recorded bool) {
		item, recorded = w.view().Known().Record.Items([]reference.Ref{appeared})[appeared]
		return item, recorded
	}
	for name, tc := range map[string]struct {
		onCreate bool
		write    func(w *world, raw map[string]any)
		// known and absent are what is recorded then, reloads what the policy says.
		known, absent, reloads bool
		restarts               int
	}{
		"another write": {onCreate: true, write: func(_ *world, raw map[string]any) { annotate(raw, "example.org/x", "y") }},
		"a PUT without managed annotations": {onCreate: true, write: func(w *world, raw map[string]any) {
			w.setManaged(raw, Record, "")
			w.setManaged(raw, Hash, "")
		}},
		"another write, creations do not count": {write: func(_ *world, raw map[string]any) { annotate(raw, "example.org/x", "y") }, known: true},
		"a release":                             {onCreate: true, write: func(_ *world, raw map[string]any) { setImage("image:2")(raw) }, known: true, restarts: 1},
		"the list is edited, too": {
			onCreate: true, known: true,
			write: func(_ *world, raw map[string]any) {
				annotate(raw, "configmap.reloader.stakater.com/reload", "app-2,app-.*")
			},
		},
		"the loop has seen it": {
			onCreate: true, known: true, absent: true, reloads: true,
			write: func(w *world, raw map[string]any) { w.setManaged(raw, Record, w.recordedAs(appeared, false)) },
		},
		"the loop has not": {
			onCreate: true, known: true,
			write: func(w *world, raw map[string]any) { w.setManaged(raw, Record, w.recordedAs(appeared, true)) },
		},
		"creations do not count": {
			known: true, // adopted as it is
			write: func(w *world, raw map[string]any) { w.setManaged(raw, Record, w.recordedAs(appeared, false)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patternWorld(t, tc.onCreate)
			if name == "the list is edited, too" {
				w.write(func(raw map[string]any) { annotate(raw, "configmap.reloader.stakater.com/reload", "app-1") })
			}
			w.set(appeared, "x")
			require.Nil(t, w.write(func(raw map[string]any) { tc.write(w, raw) }))
			item, known := record2(w)
			assert.Equal(t, tc.known, known, "recorded: %s", w.managed()[Record])
			assert.Equal(t, tc.absent, known && item.Absent(), "recorded: %s", w.managed()[Record])
			view := w.view()
			a := policy.Assess(policy.Input{Intent: view.Intent, Known: view.Known(), Ring: w.ring, Current: w.states(view.Intent.Refs())})
			assert.Equal(t, tc.reloads, a.Verdict.Action == policy.Reload, "%v", a.Verdict)
			w.quiesce()
			if tc.reloads {
				tc.restarts++
			}
			assert.Equal(t, tc.restarts, w.restarts, "once at most")
			w.set(appeared, "changed")
			w.quiesce()
			assert.Equal(t, tc.restarts+1, w.restarts, "its next change counts")
		})
	}
}

// A Record written by hand restarts nothing: what is recorded with a content stays so.
func TestHandwrittenAbsenceOfAKnownObject(t *testing.T) {
	t.Parallel()
	w := patternWorld(t, true)
	known := w.managed()[Record]
	text, _ := record.New(w.managed()[Hash], w.view().Known().Record.Key, map[reference.Ref]record.Item{cm("app-1"): {}}).Text(record.MaxSize)
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Record, text) }))
	assert.Equal(t, known, w.managed()[Record])
	w.quiesce()
	assert.Zero(t, w.restarts)
}

// The pods of a release start without an object that is absent then. Where creations count, its return is one, whatever its content.
func TestReleaseWithoutAnOptionalObject(t *testing.T) {
	t.Parallel()
	optional, required := secret("a"), cm("b")
	for name, tc := range map[string]struct {
		of                 reference.Ref
		onCreate, onDelete bool
		content            string // with which it comes back
		release, unread    bool
		restarts           int
	}{
		"the object comes back":                        {of: optional, onCreate: true, content: "A", release: true, restarts: 2},
		"with another content":                         {of: optional, onCreate: true, content: "B", release: true, restarts: 2},
		"no release was made":                          {of: optional, onCreate: true, content: "A"},
		"creations do not count":                       {of: optional, content: "A", release: true, restarts: 1},
		"creations do not count, with another content": {of: optional, content: "B", release: true, restarts: 2},
		"deletions count, too":                         {of: optional, onCreate: true, onDelete: true, content: "A", release: true, restarts: 3},
		"the pods wait for it":                         {of: required, onCreate: true, content: "A", release: true, restarts: 1},
		"the release was not stamped":                  {of: optional, onCreate: true, content: "A", release: true, unread: true, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.speak(annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.onCreate, ReloadOnDelete: tc.onDelete})
			w.set(optional, "A")
			w.set(required, "A")
			require.Nil(t, w.create(w.manifest(map[string]string{
				"configmap.reloader.stakater.com/reload": "b", "secret.reloader.stakater.com/reload": "a",
			})))
			w.quiesce()
			w.remove(tc.of)
			w.quiesce()
			if tc.release {
				w.unreadable = tc.unread
				require.Nil(t, w.write(setImage("image:2")))
				w.unreadable = false
				w.quiesce()
			}
			w.set(tc.of, tc.content)
			w.at(t, tc.restarts, "in all")
		})
	}
}

// The versions of one write are resolved one after the other, while watches deliver. An object that is tracked in one of them only has not
// become tracked by the write.
func TestObjectsThatMoveWhileAWriteIsRead(t *testing.T) {
	t.Parallel()
	appeared := cm("app-2")
	without, with := annotation.Listed{cm("app-1"): {}}, annotation.Listed{cm("app-1"): {}, appeared: {}}
	for name, tc := range map[string]struct {
		// objects are what is known at the first and at the second call; nil where that is an error.
		objects [2]annotation.Objects
		release bool
		// known is set where the object is recorded, absent where it is recorded as absent.
		known, absent bool
	}{
		"the object appears":                       {objects: [2]annotation.Objects{without, with}},
		"the object appears during a release":      {objects: [2]annotation.Objects{without, with}, release: true},
		"the namespace is listed":                  {objects: [2]annotation.Objects{nil, with}},
		"the namespace is listed during a release": {objects: [2]annotation.Objects{nil, with}, release: true},
		"the second call fails":                    {objects: [2]annotation.Objects{with, nil}},
		"the second call fails during a release":   {objects: [2]annotation.Objects{with, nil}, release: true, known: true},
		"the object is deleted":                    {objects: [2]annotation.Objects{with, without}, known: true, absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patternWorld(t, true)
			hash := w.managed()[Hash]
			if !tc.absent {
				w.set(appeared, "x")
			}
			settled, calls := w.reader.Objects, 0
			w.reader.Objects = func(namespace string) (annotation.Objects, error) {
				if calls++; calls > len(tc.objects) {
					return settled(namespace)
				}
				if objects := tc.objects[calls-1]; objects != nil {
					return objects, nil
				}
				return nil, errors.New("not listed yet")
			}
			require.Nil(t, w.write(func(raw map[string]any) {
				annotate(raw, "example.org/x", "y")
				if tc.release {
					setImage("image:2")(raw)
				}
			}))
			assert.Equal(t, hash, w.managed()[Hash])
			item, known := w.view().Known().Record.Items([]reference.Ref{appeared})[appeared]
			assert.Equal(t, tc.known, known, "recorded: %s", w.managed()[Record])
			assert.Equal(t, tc.absent, known && item.Absent())
		})
	}
}

// The API server calls again after another webhook. What the first call left to the loop is no edit of a user then.
func TestSecondCallLeavesAnObjectThatAppearedToTheLoop(t *testing.T) {
	t.Parallel()
	w := patternWorld(t, true)
	appeared, listed := cm("app-2"), cm("db")
	w.set(appeared, "x")
	w.set(listed, "x")
	w.other = func(raw map[string]any) { annotate(raw, "example.org/other", "y") }
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, "configmap.reloader.stakater.com/reload", "app-.*,db")
	}))
	assert.Equal(t, RuleAnnotationsEdited, w.result.Rule, "of the second call")
	assert.Empty(t, w.result.Warnings, "the user has edited nothing of ours")
	items := w.view().Known().Record.Items([]reference.Ref{appeared, listed})
	assert.Contains(t, items, listed)
	assert.NotContains(t, items, appeared)
	w.write(func(raw map[string]any) { w.setManaged(raw, Record, w.recordedAs(appeared, false)) })
	w.other = nil
	w.at(t, 1, "its creation counts")
}
