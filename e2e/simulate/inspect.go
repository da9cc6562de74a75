package simulate

import (
	"fmt"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// Play runs a history with a certificate of its own. Prepare must have been called.
func Play(t *testing.T, h history.History, o Options) (Result, error) {
	t.Helper()
	certificate, err := newCertificate()
	if err != nil {
		return Result{}, fmt.Errorf("make a certificate: %w", err)
	}
	return Run(t, h, certificate, o), nil
}

// show calls Options.BeforeStep. An act that still goes on has no result yet.
func (s *simulation) show(o Options, step int, acted []error) {
	if o.BeforeStep == nil {
		return
	}
	var err error
	if s.acting.Load() == 0 {
		err = acted[step]
	}
	o.BeforeStep(step, err, s.api)
}
