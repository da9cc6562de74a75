package stamp

import (
	"fmt"
	"strconv"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
)

// draft is a decision in the making.
type draft struct {
	facts
	// fields decides what a strategy of Reloader has on the template, from these facts.
	fields fieldWriter
	// overBudget says that a Record was left out.
	overBudget bool
	// firstPassKept says that the stamp of our own first pass is kept, with its explanation if it has one.
	firstPassKept bool
	Result
}

func newDraft(p Plan, req Write, inputs Inputs) *draft {
	inputs.States, inputs.Ring = req.Old.Known().Keep(inputs.States, inputs.Ring)
	req.EndsRestart = req.endsRestartAt(inputs.Now)
	given := facts{Write: req, inputs: inputs, refs: req.tracked()}
	d := &draft{facts: given, Result: Result{Rule: p.Rule, Managed: req.Old.Managed.Without(Dummy)}}
	d.fields.facts = &d.facts
	switch {
	case p.undecided(req):
		d.ReadError = req.New.Unresolved
	case len(p.Reads) == 0:
		return d
	default:
		if d.ReadError = inputs.Err; d.ReadError == nil {
			d.fresh, d.ReadError = d.freshManaged()
		}
	}
	return d
}

// known returns what is known of the pods, by the managed annotations as they are decided so far.
func (d *draft) known() policy.Known { return d.Managed.known().AsOf(d.Old.version) }

// freshManaged returns the managed annotations of pods that start with the live state, as far as it can be trusted.
func (d *draft) freshManaged() (Managed, error) {
	key, ok := d.inputs.Ring.Newest()
	if !ok {
		return nil, digest.ErrNoKey
	}
	hash, err := digest.Hash(key.ID, digest.Subset(d.inputs.States, d.refs))
	if err != nil {
		return nil, err
	}
	if d.inputs.Revision && d.hasLists() {
		hash = d.revision()
	}
	rec, err := policy.NewRecord(d.input(policy.Known{}), hash, false)
	if err != nil {
		return nil, err
	}
	managed := Managed{Hash: hash}
	d.putRecord(managed, rec)
	return managed, nil
}

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
	d.Managed.setFields(d.fields.after(templateAnnotations, changes))
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

func (d *draft) warn(format string, values ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, values...))
}
