package simulate

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
