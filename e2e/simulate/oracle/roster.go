package oracle

// roster has the workloads.
type roster struct {
	// workloads are those that exist, all every one that ever did, in the order of creation.
	workloads map[id]*workload
	all       []*workload
	byUID     map[string]*workload
}

func newRoster() *roster {
	return &roster{workloads: map[id]*workload{}, byUID: map[string]*workload{}}
}
