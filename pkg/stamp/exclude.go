package stamp

// excluded fits workloads that nobody asks us to look after, and updates of kinds whose template cannot change.
func excluded(req Request) bool {
	return req.New.Excluded || len(req.New.Intent.Tracked) == 0 || req.Immutable && !req.Create
}

// leaveAlone purges what only means something on a workload that we look after. Opting out restarts nothing, so the
// marks of the template stay until the next rollout.
func leaveAlone(req Request, _ Live) (Result, error) {
	marks := req.New.Marks.Without(Dummy, Baseline)
	if req.Create {
		delete(marks, LastReload)
	}
	for _, slot := range []Slot{Hash, Record} {
		value, present := marks[slot]
		before, had := req.Old.Marks[slot]
		switch {
		case present && req.New.Controlled:
			// A Job of a CronJob, say: the template is its controller's, which would put the mark back.
		case req.Create || req.TemplateChanged:
			delete(marks, slot)
		case had && before != value:
			marks[slot] = before
		}
	}
	return Result{Marks: marks}, nil
}
