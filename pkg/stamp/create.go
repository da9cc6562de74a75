package stamp

// created (rule 2) fits the first write of a workload.
func created(req Request) bool { return req.Create }

// stampNew stamps a new workload. Managed annotations that came along from elsewhere (get -o yaml | create, a restore)
// count for nothing.
func stampNew(d *draft) bool {
	d.Managed = Managed{}
	if d.unread == nil {
		d.stamp(Managed{}, nil)
		d.Warnings = append(d.Warnings, missing(d.Request, d.live)...)
	}
	return true
}
