package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// stripsPrefix begins the kinds of the fault that another mutating webhook removes managed annotations from what is written. What follows
// says which of them are not stored; earlyPrefix stands before those that the program's webhook may write again.
const stripsPrefix, earlyPrefix = "strips ", "early "

// What such a webhook removes.
const (
	stripsAll    = stripsPrefix + "all"
	stripsReload = stripsPrefix + reloadAnnotation
	stripsRecord = stripsPrefix + recordAnnotation
	stripsStamp  = stripsPrefix + stampAnnotation
	// stripsRequest is about the request for a reload on the workload.
	stripsRequest = stripsPrefix + "the request"
)

// strips reports whether a fault is such a webhook.
func (s *span) strips() bool { return strings.HasPrefix(s.kind, stripsPrefix) }

// what returns what such a webhook removes, whether it is called before that of the program or after it.
func (s *span) what() string { return strings.Replace(s.kind, earlyPrefix, "", 1) }

// preventsStamps reports whether a fault is such a webhook that removes stamps, or the requests for them.
func (s *span) preventsStamps() bool {
	switch s.what() {
	case stripsAll, stripsStamp, stripsRequest:
		return true
	}
	return false
}

// stripsOf reports whether such a webhook is about a workload: its scope is a namespace or a resource.
func (s *span) stripsOf(w *workload) bool {
	return s.scope == "namespaces/"+w.id.namespace || s.scope == w.id.plural
}

// isRemoved reports whether what a write stores of an annotation may lack because such a webhook has removed it, or all of them.
func (l *faultLog) isRemoved(w *workload, kind string, c world.Commit) bool {
	return c.Call != nil && slices.ContainsFunc(l.faults.spans, func(s *span) bool {
		return (s.what() == kind || s.what() == stripsAll) && s.stripsOf(w) && (s.open || !s.to.Before(c.Call.Arrived))
	})
}

// stampsPrevented reports whether another webhook may have removed a stamp of a workload, or the request for one, since a moment.
func (l *faultLog) stampsPrevented(w *workload, since time.Time) bool {
	return slices.ContainsFunc(l.faults.spans, func(s *span) bool {
		return s.preventsStamps() && s.stripsOf(w) && (s.open || s.to.After(since))
	})
}

// recordStripped records what the program does not know any more of a workload: without the stamp on the template, it takes what it finds
// for what the pods run with. Without the record it does so only where the hash alone proves nothing, as one over versions does.
func (l *ledger) recordStripped(w *workload, c world.Commit) {
	hash := world.Text(world.Annotations(world.Section(c.New, world.TemplatePath(w.id.plural)...)), l.options.Prefix+stampAnnotation)
	record := l.recordOf(c.New)
	noStamp := hash == "" && l.isRemoved(w, stripsStamp, c)
	noRecord := record == "" && l.isRemoved(w, stripsRecord, c)
	if noStamp {
		w.lastHandEdit = c.Version
		l.excuseUnreported(w)
	}
	if noStamp || noRecord && (w.dynamic || l.options.Revision) {
		w.adopt(c.Version, c.Call.ArrivedVersion, c.At, ref{}).period.unrecorded = record == ""
	}
	if noRecord || noStamp {
		w.story.unrecorded = c.Version
	}
}
