package stamp

import (
	"testing"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

func TestRule5StampRelease(t *testing.T) {
	t.Parallel()
	names := func(object string) func(*world, map[string]any) {
		return func(_ *world, raw map[string]any) {
			spec := raw["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			container := spec["containers"].([]any)[0].(map[string]any)
			container["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": object}}}
		}
	}
	judge(t, RuleTemplateChanged, map[string]row{
		"brings the configuration along": {
			since: changed, write: release,
			hash: written, record: written, last: written,
		},
		"that changes no configuration leaves the hash alone": {
			write: release,
			hash:  kept, record: kept, last: kept,
		},
		"neither where something was adopted": {
			since: adopted, write: release,
			hash: kept, record: kept, last: kept,
		},
		"nor by a manifest without our annotations": {
			write: both((*world).forget, release),
			hash:  kept, record: kept, last: kept,
		},
		"by such a manifest, with configuration": {
			since: changed, write: both((*world).forget, release),
			hash: written, record: written, last: written,
		},
		"held": {
			since: held, write: release,
			hash: kept, record: kept, last: kept,
		},
		"after which nothing is known of what was adopted and is not tracked any more": {
			since: untracked, write: release,
			hash: kept, record: written, last: kept,
		},
		"after which nothing is known of it, by a manifest without our annotations, and the state cannot be read": {
			since: func(w *world) { untracked(w); unread(w) }, write: both((*world).forget, release),
			hash: kept, record: written, last: kept, warning: "the API server is down",
		},
		"that tracks one more object": {
			since: adopted, write: names("c"),
			hash: written, record: written, last: kept,
		},
		"with a hash by hand that says nothing": {
			write: both(release, func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "x") }),
			hash:  "x", record: written, last: kept,
		},
		"the state cannot be read: the old annotations stay, the loop catches up": {
			since: func(w *world) { changed(w); unread(w) }, write: both((*world).forget, release),
			hash: kept, record: kept, last: kept, warning: "the API server is down",
		},
	})
}

func TestRule5StampLists(t *testing.T) {
	t.Parallel()
	lists := func(configMaps string) func(*world, map[string]any) {
		return func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, configMaps) }
	}
	judge(t, RuleListsEdited, map[string]row{
		"one more": {
			write: lists("a,b"),
			hash:  written, record: written, last: written,
		},
		"one less": {
			write: lists(""),
			hash:  written, record: written, last: written,
		},
		"one that does not exist": {
			write: lists("a,typo"),
			hash:  written, record: written, last: written, warning: "configmap/typo",
		},
		"one that is tracked already": {
			since: func(w *world) {
				adopted(w)
				w.write(func(raw map[string]any) { lists("a,b")(w, raw) })
			}, write: lists("a"),
			hash: kept, record: kept, last: kept,
		},
		"one less, and the state cannot be read: the pods stay, and so does what is known of them": {
			since: unread, write: lists(""),
			hash: kept, record: kept, last: kept, warning: "the API server is down",
		},
		"the state cannot be read": {
			since: unread, write: lists("a,b"),
			hash: kept, record: kept, last: kept, warning: "the API server is down",
		},
	})
}

func TestRule6Restore(t *testing.T) {
	t.Parallel()
	judge(t, RuleAnnotationsMissing, map[string]row{
		"a PUT that knows none of them": {
			write: (*world).forget,
			hash:  kept, record: kept, last: kept,
		},
		"also where a change is due: that is the loop's": {
			since: changed, write: (*world).forget,
			hash: kept, record: kept, last: kept,
		},
		"one of them, and nothing can be read": {
			since: unread, write: func(w *world, raw map[string]any) { w.setManaged(raw, Record, "") },
			hash: kept, record: kept, last: kept,
		},
	})
	edit := func(key Key, value string) func(*world, map[string]any) {
		return func(w *world, raw map[string]any) { w.setManaged(raw, key, value) }
	}
	live := func(w *world, raw map[string]any) { w.setManaged(raw, Hash, w.hash()) }
	report := func(w *world, raw map[string]any) { w.setManaged(raw, Record, w.liveRecord(true).String()) }
	// earlier brings the hash of another content, as an undo to an earlier reload does.
	earlier := func(w *world, raw map[string]any) {
		now := w.configs[cm("a")]
		w.set(cm("a"), "earlier")
		w.setManaged(raw, Hash, w.hash())
		w.configs[cm("a")] = now
	}
	const undo = "; after rollout undo, change the ConfigMaps and Secrets instead"
	notifying := func(since func(*world)) func(*world) {
		return func(w *world) { since(w); w.notifyOnly = true }
	}
	judge(t, RuleAnnotationsEdited, map[string]row{
		"a Change that was reported instead of a reload": {since: notifying(changed), write: report, hash: kept, record: written, last: kept},
		"a report of a state that is over": {since: notifying(changed), write: func(w *world, raw map[string]any) {
			report(w, raw)
			w.set(cm("a"), "over")
		}, hash: kept, record: kept, last: kept, warning: "config-record"},
		"a report, but held": {since: notifying(held), write: report, hash: kept, record: kept, last: kept, warning: "config-record"},
		"a hash by hand":     {write: edit(Hash, "mine"), hash: kept, record: kept, last: kept, warning: "has restored them: config-hash"},
		"a restart by hand":  {write: edit(Restart, "7"), hash: kept, record: kept, last: kept, warning: "config-restart"},
		"a Record by hand":   {write: edit(Record, "v1:garbage"), hash: kept, record: kept, last: kept, warning: "config-record; if a manifest has them"},
		"an earlier hash, by an undo of a StatefulSet": {write: earlier, hash: kept, record: kept, last: kept, warning: "restored them: config-hash of the pod template; if a manifest has them, remove them there" + undo},
		"a last reload by hand":                        {write: edit(LastReload, "{}"), hash: kept, record: kept, last: kept, warning: "last-reload"},
		"a stamp that is due":                          {since: changed, write: live, hash: written, record: written, last: written},
		"a stamp of a state that is over": {since: changed, write: func(w *world, raw map[string]any) {
			live(w, raw)
			w.set(cm("a"), "over")
		}, hash: kept, record: kept, last: kept, warning: "restored"},
		"a true hash under another key": {since: func(w *world) { w.rotate("2") }, write: live, hash: kept, record: kept, last: kept, warning: "restored"},
		"a stamp, but held":             {since: held, write: live, hash: kept, record: kept, last: kept, warning: "restored"},
		"a Record that hides a Change": {since: changed, write: func(w *world, raw map[string]any) {
			w.setManaged(raw, Record, w.liveRecord(true).String())
		}, hash: kept, record: kept, last: kept, warning: "config-record"},
		"a reload without a stamp, such as a Job made again": {since: changed, write: func(w *world, raw map[string]any) {
			w.setManaged(raw, Record, w.liveRecord(true).String())
			w.setManaged(raw, LastReload, record.LastReload{Time: w.inputs(nil).Now, Hash: w.managed()[Hash], Cause: record.CauseConfigChange}.String())
		}, hash: kept, record: written, last: written},
		"the state cannot be read": {since: func(w *world) { changed(w); unread(w) }, write: live, hash: kept, record: kept, last: kept, warning: "the API server is down"},
	})
	judge(t, RuleSecondPass, map[string]row{ // which goes on with rule 6
		"an earlier hash with its Record and last reload, by an undo of a Deployment or an exported manifest": {
			write: func(w *world, raw map[string]any) {
				earlier(w, raw)
				hash := w.managedOf(raw)[Hash]
				w.setManaged(raw, Record, record.New(hash, "", nil).String())
				w.setManaged(raw, LastReload, record.LastReload{Time: someTime, Hash: hash, Cause: record.CauseRelease}.String())
			},
			hash: kept, record: kept, last: kept,
			warning: "config-hash of the pod template, config-record, last-reload; if a manifest has them, remove them there" + undo,
		},
	})
}

func TestRule7Adopt(t *testing.T) {
	t.Parallel()
	optIn := func(_ *world, raw map[string]any) { annotate(raw, autoKey, "true") }
	judge(t, RuleAdopt, map[string]row{
		"opting in through the other dialect": {
			write: optIn,
			hash:  kept, record: written, last: kept,
		},
		"a change that is due stays due": {
			since: changed, write: optIn,
			hash: kept, record: written, last: kept,
		},
		"the state cannot be read": {
			since: unread, write: optIn,
			hash: kept, record: kept, last: kept, warning: "the API server is down",
		},
	})
}

func TestRule8Nothing(t *testing.T) {
	t.Parallel()
	judge(t, RuleNothing, map[string]row{
		"a scale, and nothing can be read": {
			since: unread, write: scaled,
			hash: kept, record: kept, last: kept,
		},
		"a label where a change is due: that is the loop's": {
			since: changed,
			write: func(_ *world, raw map[string]any) {
				raw["metadata"].(map[string]any)["labels"] = map[string]any{"x": "y"}
			},
			hash: kept, record: kept, last: kept,
		},
		"a Record that a newer version wrote is not replaced": {
			since: func(w *world) {
				w.away = true
				w.write(func(raw map[string]any) { w.setManaged(raw, Record, "v2:x") })
				w.away = false
				changed(w)
			},
			write: scaled,
			hash:  kept, record: kept, last: kept,
		},
	})
}
