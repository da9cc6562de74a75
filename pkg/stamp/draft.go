package stamp

import (
	"cmp"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
)

// facts are what a decision is made from: the write, and what was read for it. Their methods answer questions and change nothing.
type facts struct {
	Write
	Settings
	live live
	// ringRead says that a key that the ring does not have is lost.
	ringRead bool
	now      time.Time
	// fresh are the hash and the Record of the live state; nil where nothing was read, or could not be.
	fresh Managed
}

func newFacts(req Write, inputs Inputs) facts {
	states, ring := req.Old.Known().Keep(inputs.States, inputs.Ring)
	req.EndsRestart = req.endsRestartAt(inputs.Now)
	return facts{Write: req, Settings: inputs.Settings, ringRead: inputs.RingRead, now: inputs.Now, live: live{policy.Input{
		Namespace:             inputs.Namespace,
		Intent:                req.New.Intent,
		Refs:                  req.tracked(),
		Required:              req.New.Required,
		Current:               states,
		Ring:                  ring,
		ReloadMissingRequired: inputs.ReloadMissingRequired,
	}}}
}

// freshManaged returns the managed annotations of pods that start with the live state, as far as it can be trusted.
func (f *facts) freshManaged() (fresh Managed, overBudget bool, err error) {
	hash, err := f.live.hash()
	if err != nil {
		return nil, false, err
	}
	if f.Revision {
		hash = cmp.Or(f.live.Revision(), hash)
	}
	rec, err := f.live.record(hash, false)
	if err != nil {
		return nil, false, err
	}
	fresh = Managed{Hash: hash}
	fits := fresh.putRecord(rec, f.live.Refs, f.New.WorkloadBudget-len(f.Old.Managed[LastReload]))
	return fresh, !fits, nil
}

// draft is a decision in the making.
type draft struct {
	facts
	// byReloader are the fields of the write that Stakater's Reloader has set.
	byReloader []string
	// overBudget says that a Record was left out.
	overBudget bool
	// firstPassKept says that the stamp of our own first pass is kept, with its explanation if it has one.
	firstPassKept bool
	Result
}

func newDraft(p Plan, req Write, inputs Inputs) *draft {
	d := &draft{facts: newFacts(req, inputs), Result: Result{Rule: p.Rule, Managed: req.Old.Managed.Without(Dummy)}}
	switch {
	case p.undecided(req):
		d.ReadError = req.New.Unresolved
	case len(p.Reads) == 0:
	case inputs.Err != nil:
		d.ReadError = inputs.Err
	default:
		d.fresh, d.overBudget, d.ReadError = d.freshManaged()
	}
	return d
}

// known returns what is known of the pods, by the managed annotations as they are decided so far.
func (d *draft) known() policy.Known { return d.Managed.known().AsOf(d.Old.version) }

// stamp brings the live state to the pods of a template that bears the given managed annotations. Where a reload is due
// although the hash stays the same (the pods run an adopted content, and the stamped one came back), config-restart
// restarts them. It stays when the hash changes: without it, the hash could come back to the template from before, whose pods run the
// adopted content.
func (d *draft) stamp(templateAnnotations Managed, changes []policy.Change) {
	d.Managed.put(d.fresh, Hash, Record)
	switch {
	case d.fresh[Hash] != templateAnnotations[Hash]:
	case len(changes) > 0:
		d.Managed[Restart] = strconv.FormatInt(d.Old.Generation, 10)
	default:
		d.Managed.put(templateAnnotations, Restart)
	}
	d.Managed.setFields(d.fieldsAfter(templateAnnotations, changes, d.byReloader))
	d.Changes = changes
	d.Stamped = !d.Managed.sameStamp(d.Old.Managed)
}

// reload is stamp with an explanation, where the stamp restarts pods.
func (d *draft) reload(templateAnnotations Managed, changes []policy.Change, cause string) {
	d.stamp(templateAnnotations, changes)
	if d.Stamped || d.TemplateChanged {
		d.Managed[LastReload] = d.explain(d.Managed[Hash], changes, templateAnnotations, cause)
	}
}

func (d *draft) warn(text string) { d.Warnings = append(d.Warnings, text) }
