package stamp

import (
	"errors"
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Result is the decision about a request.
type Result struct {
	// Rule is the first one that the request fits.
	Rule Rule
	// Managed are those that the workload must have as it is stored.
	Managed Managed
	// Reject is set if the request must not pass.
	Reject *Rejection
	// Warnings are for the user who wrote.
	Warnings []string
	// Changes are those that the stamp brings to the pods.
	Changes []policy.Change
	// Stamped says that the managed annotations of the template are not those from before the write.
	Stamped bool
	// Unwritten is the text of last-reload where it does not fit into the annotations: only the process that asked for the reload
	// can report it.
	Unwritten string
	// ReadError says why the live state is not known although the rule needs it.
	ReadError error
}

// Rejection is an answer that keeps a write from passing.
type Rejection struct {
	// Conflict says that the digest does not match; without it the digest cannot be verified now.
	Conflict bool
	Message  string
}

// result closes a decision.
func (d *draft) result() Result {
	if d.Reject != nil {
		return d.Result
	}
	d.keepNewer()
	if d.ReadError != nil && !d.firstPassKept {
		d.warn(unreadText(d.Rule, d.New.Excluded, d.ReadError))
	}
	if _, valid := d.dummy(); !valid && !d.Create && d.Rule != RuleExcluded && d.edit().bringsDummy() {
		d.warn("pod-reloader removed a stale reload request: it was made for another generation; read the workload again")
	}
	d.dropUntilValid()
	return d.Result
}

// keepNewer keeps a stored Record that a newer version of this program has written: it is neither judged nor replaced, but
// for what pod-reloader clean asks for. One that only the write brings may be a hand edit.
func (d *draft) keepNewer() {
	if d.Rule == RuleExcluded && d.cleans() {
		return
	}
	if _, err := record.Parse(d.Old.Managed[Record]); errors.Is(err, record.ErrNewer) {
		d.Managed.put(d.Old.Managed, Record)
	}
}

// WarningUnread begins the warning about a write that was not stamped.
const WarningUnread = "pod-reloader did not update the config-hash"

// unreadText says that nothing was stamped by a rule. The loop acts on changes later, but an edit of the lists is none: what is new in them is
// unknown.
func unreadText(rule Rule, excluded bool, err error) string {
	text := WarningUnread + ": %s; it retries by itself"
	switch {
	case rule == RuleExcluded && excluded:
		text = "pod-reloader did not record what the new pods start with: %s; a change until the exclusion ends does not restart them"
	case rule == RuleListsEdited:
		text = WarningUnread + ": %s; this edit of the lists restarts no pods: edit them again, or restart the workload"
	}
	return fmt.Sprintf(text, reference.Cut(err.Error(), maxErrorText))
}
