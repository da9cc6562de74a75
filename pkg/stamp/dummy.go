package stamp

import (
	"cmp"
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
	// bound: the request names a generation, and it is the present one.
	bound bool
}

// bringsDummy reports whether the write brings a request for a reload, stale or not.
func (e edit) bringsDummy() bool {
	_, asked := e.now[Dummy]
	return asked && !e.keeps(Dummy)
}

// dummy returns the request for a reload that the write brings; false for one that was stored already, or that was made for another
// generation: it is stale (rule 3).
func (r Write) dummy() (dummy, bool) {
	if r.Create || !r.edit().bringsDummy() {
		return dummy{}, false
	}
	given, generation, bound := strings.Cut(r.New.Managed[Dummy], "@")
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
	return !given.bound && (r.TemplateChanged || !r.edit().keepsStamp())
}

// verify lets a request for a reload pass if its digest is that of the state read here, and rejects it otherwise, unless
// it may be an old one. Whether a reload is due is another question: where it is not, the request is purged. In a write
// that changes the template, too, rule 5 answers it.
func verify(d *draft) bool {
	given, _ := d.dummy()
	if refused := d.refuse(given, cmp.Or(d.ReadError, d.live.unverified())); refused != nil {
		if d.undone(given) {
			return false // it is stale (rule 3)
		}
		d.Reject = refused
		return true
	}
	if d.TemplateChanged {
		return false
	}
	verdict := d.live.assess(d.Old.Known()).Verdict
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

// refuse returns why a request for a reload must not pass, if its digest is not known to be that of the live state; nil if it is.
func (f *facts) refuse(given dummy, unverified error) *Rejection {
	switch {
	case unverified != nil:
		return &Rejection{Message: fmt.Sprintf("the digest cannot be verified: %v; retry", unverified)}
	case given.bound && given.digest == digest.AnyCurrent || f.live.proves(given.digest):
		return nil
	default:
		return &Rejection{Conflict: true, Message: fmt.Sprintf(
			"the digest %s does not match the current configuration, whose digest is %s, over %s; read it again and retry",
			reference.Quote(given.digest), f.fresh[Hash], describe(f.live.Refs))}
	}
}

// awaited reports whether a client of SAP's protocol asks with a digest and waits for pods that bear it, which the present
// ones do not.
func (f *facts) awaited(given string) bool {
	return f.Revision && given == f.fresh[Hash] && given != f.Old.Managed[Hash]
}
