package stamp

// created (rule 2) fits the first write of a workload.
func created(req Request) bool { return req.Create }

// stampNew stamps a new workload. Managed annotations that came along from elsewhere (get -o yaml | create, a restore)
// count for nothing. What a strategy of Reloader has written stays: it restarts nothing here.
func stampNew(d *draft) bool {
	d.Managed = d.New.Managed.only(Fields)
	if d.Unread == nil {
		d.stamp(d.Managed.only(Fields), nil)
		d.Warnings = append(d.Warnings, missing(d.Request, d.live)...)
	}
	return true
}
