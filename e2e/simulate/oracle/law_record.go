package oracle

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// recordLaw is the law "prompt" for what keeps the program from restarting a workload at all: a Record that it does not evaluate.
type recordLaw struct {
	*ledger
	passive
}

// stored looks who has written a Record of a newer version: only a user may, or a controller that copies one.
func (l *recordLaw) stored(c world.Commit) {
	record := l.recordOf(c.New)
	if c.Call == nil || !isOfNewerVersion(record) || record == l.recordOf(c.Old) {
		return
	}
	if l.isProgram(c.Call) || record != l.recordOf(c.Sent) {
		l.violate(c.At, broken{"prompt", idOf(c.Key).String(), "newer-record"},
			"the program wrote a Record of a newer version (version %d), which it does not evaluate: no change restarts the pods any more", c.Version)
	}
}
