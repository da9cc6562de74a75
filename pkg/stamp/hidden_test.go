package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// hiding is a world whose workload tracks what its pod spec names: configmap/b, which the pods need, and secret/a, which does not exist.
type hiding struct {
	*world
	dialect annotation.Stakater
	// ignored are the config objects with an annotation ignore.
	ignored map[reference.Ref]bool
}

func newHiding(t *testing.T) *hiding {
	t.Helper()
	h := &hiding{world: newWorld(t), ignored: map[reference.Ref]bool{}}
	h.configure(func(d *annotation.Stakater) { d.Keys = annotation.NewStakaterKeys() })
	h.reader.Objects = func(string) (annotation.Objects, error) {
		objects := annotation.Listed{}
		for ref := range h.configs {
			objects[ref] = annotation.Traits{Ignored: h.ignored[ref]}
		}
		return objects, nil
	}
	h.set(cm("b"), "A")
	require.Nil(t, h.create(h.manifest(map[string]string{"reloader.stakater.com/auto": "true"})))
	h.at(t, 0, "created")
	return h
}

// configure is a restart of the installation with other flags.
func (h *hiding) configure(flags func(*annotation.Stakater)) {
	flags(&h.dialect)
	h.reader.Dialects = []annotation.Dialect{annotation.SAP{Keys: h.keys}, h.dialect}
}

func (h *hiding) annotate(key, value string) {
	require.Nil(h.t, h.write(func(raw map[string]any) { annotate(raw, key, value) }))
}

// ways are those in which an object is hidden for a time: it is not tracked, and no pod is replaced.
func ways() map[string]struct{ hide, show func(*hiding) } {
	const exclude = "configmaps.exclude.reloader.stakater.com/reload"
	without := func(kinds ...reference.Kind) func(*hiding) {
		return func(h *hiding) { h.configure(func(d *annotation.Stakater) { d.Without = kinds }) }
	}
	return map[string]struct{ hide, show func(*hiding) }{
		"annotation ignore": {
			hide: func(h *hiding) { h.ignored[cm("b")] = true },
			show: func(h *hiding) { h.ignored = map[reference.Ref]bool{} },
		},
		"exclude list": {
			hide: func(h *hiding) { h.annotate(exclude, "b") },
			show: func(h *hiding) { h.annotate(exclude, "") },
		},
		"kind that the flags exclude": {hide: without(reference.ConfigMap), show: without()},
	}
}

// What is known of an object that is hidden for a time does not depend on whether another one is adopted in that time.
func TestHiddenObjectIsComparedWithWhatThePodsHave(t *testing.T) {
	t.Parallel()
	change := func(h *hiding) { h.set(cm("b"), "B") }
	adopt := func(h *hiding) { h.set(secret("a"), "A"); h.quiesce() }
	adoptInWrite := func(h *hiding) { h.set(secret("a"), "A"); h.annotate("example.org/x", "y") }
	release := func(h *hiding) { require.Nil(h.t, h.write(setImage("image:2"))) }
	for name, tc := range map[string]struct {
		reason   string
		between  []func(*hiding)
		restarts int
	}{
		"changed":                     {reason: "The pods have an older content.", between: []func(*hiding){change}, restarts: 1},
		"changed, another is adopted": {reason: "They have it still.", between: []func(*hiding){change, adopt}, restarts: 1},
		"another is adopted, changed": {reason: "They have it still.", between: []func(*hiding){adopt, change}, restarts: 1},
		"changed, the webhook adopts": {reason: "They have it still.", between: []func(*hiding){change, adoptInWrite}, restarts: 1},
		"another is adopted":          {reason: "Nothing has changed.", between: []func(*hiding){adopt}, restarts: 0},
		"changed, another is adopted, release": {
			reason: "The pods of the release have the content.", between: []func(*hiding){change, adopt, release}, restarts: 1,
		},
		"changed, a release adopts": {
			reason: "They have it, too.", restarts: 1,
			between: []func(*hiding){change, func(h *hiding) { h.set(secret("a"), "A"); release(h) }},
		},
		"changed, a release adopts that another webhook changes": {
			reason: "The second pass finds the Record of the first.", restarts: 1,
			between: []func(*hiding){change, func(h *hiding) {
				h.set(secret("a"), "A")
				h.other = func(raw map[string]any) { annotate(raw, "other", "1", "spec", "template") }
				release(h)
			}},
		},
		"changed, and the adopted one changes": {
			reason: "The pods restart for the other one, and start with the content.", restarts: 1,
			between: []func(*hiding){change, adopt, func(h *hiding) {
				h.set(secret("a"), "B")
				h.quiesce()
			}},
		},
	} {
		for way, w := range ways() {
			t.Run(way+": "+name, func(t *testing.T) {
				t.Parallel()
				h := newHiding(t)
				w.hide(h)
				for _, do := range tc.between {
					do(h)
				}
				h.quiesce()
				w.show(h)
				h.at(t, tc.restarts, tc.reason)
				h.set(cm("b"), "C")
				h.at(t, tc.restarts+1, "the next change counts")
			})
		}
	}
}

// An object that is recorded as absent may be created while it is hidden.
func TestHiddenCreationTriggersWhenTheObjectIsShown(t *testing.T) {
	t.Parallel()
	for name, adopts := range map[string]bool{"nothing else": false, "another is adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			h.configure(func(d *annotation.Stakater) { d.ReloadOnCreate = true })
			h.ignored[secret("a")] = true
			h.set(secret("a"), "A")
			if adopts {
				h.remove(cm("b")) // no pod is replaced
				h.set(cm("c"), "A")
				h.annotate("configmap.reloader.stakater.com/reload", "c")
				h.set(cm("b"), "A")
			}
			h.at(t, 0, "hidden")
			h.ignored = map[reference.Ref]bool{}
			h.at(t, 1, "it is created since the pods were started")
		})
	}
}

// While nothing is tracked, a write that keeps the pods keeps what is known of them, if the annotations ask for reloads still.
func TestNothingTrackedForATime(t *testing.T) {
	t.Parallel()
	label := func(h *hiding) { h.annotate("example.org/x", "y") }
	release := func(h *hiding) { require.Nil(h.t, h.write(setImage("image:2"))) }
	for name, tc := range map[string]struct {
		reason   string
		write    func(*hiding)
		restarts int
	}{
		"a label":   {reason: "The pods have an older content.", write: label, restarts: 1},
		"a PUT":     {reason: "They have it still.", write: func(h *hiding) { require.Nil(h.t, h.put()) }, restarts: 1},
		"a release": {reason: "The pods of the release have the content.", write: release, restarts: 1},
	} {
		for asks, way := range hidesOfAll(annotation.DefaultKeys().Secrets) {
			t.Run(asks+": "+name, func(t *testing.T) {
				t.Parallel()
				h := newHiding(t)
				h.configure(func(d *annotation.Stakater) { d.AutoReloadAll = way.all })
				h.set(secret("db"), "A")
				h.set(secret("a"), "A")
				require.Nil(t, h.create(h.manifest(way.annotations)))
				h.at(t, 0, "created")
				change := func(content string) {
					h.set(secret("db"), content)
					h.set(secret("a"), content)
				}
				way.hide(h)
				change("B")
				tc.write(h)
				assert.Equal(t, RuleExcluded, h.result.Rule)
				h.quiesce()
				way.show(h)
				h.at(t, tc.restarts, tc.reason)
				change("C")
				h.at(t, tc.restarts+1, "the next change counts")
			})
		}
	}
}

// hideOfAll hides all that a workload tracks for a time.
type hideOfAll struct {
	annotations map[string]string
	// all is --auto-reload-all.
	all        bool
	hide, show func(*hiding)
}

// hidesOfAll are those of workloads that ask for reloads in various ways, the given list of SAP among them.
func hidesOfAll(list string) map[string]hideOfAll {
	const excludeConfigMaps, excludeSecrets = "configmaps.exclude.reloader.stakater.com/reload", "secrets.exclude.reloader.stakater.com/reload"
	without := func(kinds ...reference.Kind) func(*hiding) {
		return func(h *hiding) {
			h.configure(func(d *annotation.Stakater) { d.Without = kinds })
			h.reader.Dialects[0] = annotation.SAP{Keys: h.keys, WithoutSecrets: len(kinds) > 0}
		}
	}
	exclude := func(configMaps, secrets string) func(*hiding) {
		return func(h *hiding) {
			h.annotate(excludeConfigMaps, configMaps)
			h.annotate(excludeSecrets, secrets)
		}
	}
	both := without(reference.ConfigMap, reference.Secret)
	return map[string]hideOfAll{
		"a list of SAP":                 {map[string]string{list: "db"}, false, without(reference.Secret), without()},
		"auto of the kind":              {map[string]string{"secret.reloader.stakater.com/auto": "true"}, false, without(reference.Secret), without()},
		"auto of all kinds":             {map[string]string{"reloader.stakater.com/auto": "true"}, false, both, without()},
		"every workload, kinds":         {nil, true, both, without()},
		"every workload, exclude lists": {nil, true, exclude("b", "a"), exclude("", "")},
	}
}

// A Change that is reported instead of a reload replaces no pod: what is hidden then stays known.
func TestHiddenObjectStaysKnownWhereAnotherChangeIsReported(t *testing.T) {
	t.Parallel()
	h := newHiding(t)
	h.set(secret("a"), "A")
	h.at(t, 0, "adopted")
	h.notifyOnly = true
	h.ignored[cm("b")] = true
	h.set(cm("b"), "B")
	h.set(secret("a"), "B")
	in := policy.Input{Intent: h.view().Intent, Known: h.view().Known(), Ring: h.ring, Current: h.states(h.view().Intent.Refs())}
	rec, err := policy.RecordNotified(in, h.managed()[Hash])
	require.NoError(t, err)
	require.Nil(t, h.write(func(raw map[string]any) { h.setManaged(raw, Record, rec.String()) }))
	assert.Empty(t, h.result.Warnings)
	assert.Equal(t, rec.String(), h.managed()[Record], "the webhook stores what the loop has written")
	h.ignored = map[reference.Ref]bool{}
	assert.Equal(t, []policy.Change{{Ref: cm("b"), Type: policy.Modified}}, h.verdict().Changes, "it is due, and the other one is not")
}
