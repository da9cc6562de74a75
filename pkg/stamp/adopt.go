package stamp

import (
	"errors"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// somethingUnknown fits a workload of which not all is known: at first sight nothing is.
func somethingUnknown(req Request) bool { return len(unknown(req)) > 0 }

// unknown returns the tracked Refs that neither Record nor Baseline names.
func unknown(req Request) []reference.Ref {
	return policy.Unknown(req.New.Intent, req.Old.Marks.Known())
}

// adopt takes the current state of what is unknown as known, in the Baseline: nothing restarts.
func adopt(req Request, live Live) (Result, error) {
	marks := req.Old.Marks.Without(Dummy)
	known, base := marks.known()
	baseline, _, err := policy.Adopt(policy.Adoption{
		Input:        policy.Input{Intent: req.New.Intent, Known: known, Current: live.States, Ring: live.Ring},
		Verdict:      policy.Verdict{Adopt: unknown(req), Changes: req.changes(live)},
		Previous:     base,
		TemplateHash: marks[Hash],
		Limit:        req.New.BaselineRoom(),
	})
	if errors.Is(err, policy.ErrForeign) {
		// The loop does this once for a key, so that two installations do not fight over a workload.
		return Result{Marks: marks}, nil
	}
	if err != nil {
		return Result{}, err
	}
	marks[Baseline] = baseline.String()
	return Result{Marks: marks}, nil
}

// BaselineRoom returns how long the text of a Baseline may be.
func (v View) BaselineRoom() int {
	return min(record.MaxSize, v.WorkloadRoom-len(v.Marks[LastReload]))
}
