package stamp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// dummy is a request for a reload that a write brings.
type dummy struct {
	digest string
	// bound says that it is made for the generation that it names, which is the present one.
	bound bool
}

// dummy returns the request for a reload that the write brings; false for one that was stored already, or that was made for another
// generation: it is stale (rule 3).
func (r Write) dummy() (dummy, bool) {
	value, ok := r.New.Managed[Dummy]
	if !ok || r.Create || r.New.Managed.same(r.Old.Managed, Dummy) {
		return dummy{}, false
	}
	given, generation, bound := strings.Cut(value, "@")
	if bound && generation != strconv.FormatInt(r.Old.Generation, 10) {
		return dummy{}, false
	}
	return dummy{digest: given, bound: bound}, true
}

// newDummy (rule 4) fits a write that asks for a reload.
func newDummy(req Write) bool {
	_, ok := req.dummy()
	return ok
}

// undone reports whether rollout undo may have brought a request for a reload back: it asks for nothing.
func (r Write) undone(given dummy) bool {
	return !given.bound && (r.TemplateChanged || !r.New.Managed.sameStamp(r.Old.Managed))
}

// verify lets a request for a reload pass if its digest is that of the state read here, and rejects it otherwise, unless
// it may be an old one. Whether a reload is due is another question: where it is not, the request is purged. In a write
// that changes the template, too, rule 5 answers it.
func verify(d *draft) bool {
	given, _ := d.dummy()
	unverified := d.unverified()
	switch {
	case unverified == nil && (given.bound && given.digest == digest.AnyCurrent || d.proves(given.digest)):
	case d.undone(given):
		return false // it is stale (rule 3)
	case unverified != nil:
		d.reject(Rejection{Message: fmt.Sprintf("the digest cannot be verified: %v; retry", unverified)})
		return true
	default:
		d.reject(Rejection{Conflict: true, Message: fmt.Sprintf(
			"the digest %s does not match the current configuration, whose digest is %s, over %s; read it again and retry",
			reference.Quote(given.digest), d.fresh[Hash], describe(d.tracked()))})
		return true
	}
	if d.TemplateChanged {
		return false
	}
	verdict := d.assess(d.Old.Known()).Verdict
	switch {
	case verdict.Action == policy.Reload:
		d.reload(d.Old.Managed, verdict.Changes, record.CauseConfigChange)
	case verdict.Action == policy.Nothing && d.awaited(given.digest):
		d.reload(d.Old.Managed, nil, record.CauseVerifiedReload)
	default:
		return false
	}
	d.warnMissing()
	return true
}

// unverified says why no digest can be verified here: the live state is not known, or not live.
func (d *draft) unverified() error {
	if d.ReadError != nil {
		return d.ReadError
	}
	for _, ref := range d.refs {
		if reason := d.inputs.States[ref].Unverified; reason != "" {
			return fmt.Errorf("%s may be older than this request: %s", ref, reason)
		}
	}
	return nil
}

// awaited reports whether a client of SAP's protocol asks with a digest and waits for pods that bear it, which the present
// ones do not.
func (f *facts) awaited(given string) bool {
	return f.inputs.Revision && given == f.fresh[Hash] && given != f.Old.Managed[Hash]
}

func (d *draft) reject(r Rejection) { d.Warnings, d.Reject = nil, &r }
