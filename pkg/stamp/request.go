package stamp

import (
	"errors"
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// RequestReload returns what the webhook would decide about a request for a reload of a stored workload. The error says that it would not
// let it pass, or could not stamp it: then nothing may be written.
func RequestReload(stored View, live Inputs) (Result, error) {
	req := Write{Old: stored, New: stored}
	req.Old.Managed = stored.Managed.Without(Dummy)
	req.New.Managed = maps.Clone(req.Old.Managed)
	req.New.Managed[Dummy] = digest.Bind(digest.AnyCurrent, stored.Generation)
	result := Choose(req).Apply(req, live)
	switch {
	case result.Reject != nil:
		return Result{}, errors.New(result.Reject.Message)
	case !result.Stamped && len(result.Warnings) > 0:
		return Result{}, errors.New(result.Warnings[0])
	}
	return result, nil
}
