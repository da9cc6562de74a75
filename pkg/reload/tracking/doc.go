// Package tracking knows the workloads, by the watches of their kinds, and queues those that a change of a workload, a config object or
// a namespace concerns. Where a watch fails, it reads what the watch would show.
package tracking
