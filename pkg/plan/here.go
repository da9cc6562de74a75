package plan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// ourAction returns what this program does when an object changes.
func (c *comparison) ourAction(s subject, ch change) Action {
	_, known := c.Here.Kinds.Get(s.object.Kind.GroupVersionKind)
	if !known || !c.inOurScope(s) || excluded(s, c.Here.Keys) || s.object.Check() != nil {
		return Nothing
	}
	in, ok := c.input(s, ch)
	if !ok || policy.Assess(in).Verdict.Action != policy.Reload {
		return Nothing
	}
	action := workloadAction(s, cronrun.IsAtOnce(in.Intent.Tracked[ch.ref], ch.event), c.Here.RerunFinishedJobs)
	if c.Here.NotifyOnly && action != Nothing {
		return Notify
	}
	return action
}

// inOurScope reports whether this program handles workloads with the namespace and the labels of this one.
func (c *comparison) inOurScope(s subject) bool {
	return c.Here.Scope.Outside(s.object.Namespace(), s.namespaceLabels, s.object.Labels()) == ""
}

// workloadAction returns how a reload restarts a workload of its kind.
func workloadAction(s subject, atOnce, rerunFinished bool) Action {
	kind := s.object.Kind
	cron := cronrun.CronJob{Object: s.object}
	switch {
	case kind.CreateOnly:
		return jobAction(s, atOnce, rerunFinished)
	case kind.Schedules() && (!atOnce || cron.Decide(0) == cronrun.Skip):
		return NextRun
	case kind.Schedules() && cron.Exclusive():
		return RunAlone
	case kind.Schedules():
		return Run
	case kind.Restartable() && s.intent.Restart:
		return RestartAt
	default:
		return Restart
	}
}

// jobAction returns what becomes of a Job.
func jobAction(s subject, atOnce, rerunFinished bool) Action {
	if atOnce && jobrun.Decide(s.object, rerunFinished) == jobrun.Recreate {
		return Recreate
	}
	return Nothing
}

// input returns what the policy judges: a workload whose pods know the object as it was before the change. It is false where the
// object is not tracked.
func (c *comparison) input(s subject, ch change) (policy.Input, bool) {
	before, after := map[reference.Ref]annotation.Traits{}, map[reference.Ref]annotation.Traits{}
	if ch.event != policy.Created {
		before[ch.ref] = ch.traits
	}
	if ch.event != policy.Deleted {
		after[ch.ref] = ch.traits
	}
	wasTracked := s.tracked(ch.ref, before, false)
	if !s.tracked(ch.ref, after, wasTracked) {
		return policy.Input{}, false
	}
	ring, _ := digest.NewRing(map[string][]byte{"key": make([]byte, 32)}) // which is long enough
	newest, _ := ring.Newest()
	intent, _ := annotation.Resolve(s.intent, annotation.Listed(after), recorded{ch.ref: wasTracked}, nil)
	items := map[reference.Ref]record.Item{}
	created := ch.event == policy.Created
	if item, ok := record.ItemOf(newest.ID, state(ring, ch, created, "before")); ok && (wasTracked || created) {
		items[ch.ref] = item
	}
	intent.Tracked = map[reference.Ref]annotation.Trigger{ch.ref: intent.Tracked[ch.ref]}
	return policy.Input{
		Namespace: s.object.Namespace(), Intent: intent, Required: maps.Clone(s.required), Ring: ring,
		Known:                 policy.Known{Record: record.New("", newest.ID, items)},
		Current:               map[reference.Ref]digest.State{ch.ref: state(ring, ch, ch.event == policy.Deleted, "after")},
		ReloadMissingRequired: c.Here.ReloadMissingRequired,
	}, true
}

// state returns that of an object whose content is a word. The word is also its resourceVersion.
func state(ring digest.Ring, ch change, absent bool, content string) digest.State {
	if absent {
		return digest.State{Absent: true}
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ch.ref.Name}, Data: map[string]string{"key": content}}
	return digest.StateOf(digest.OfConfigMap(object), "uid", content, ring)
}
