// Package chain runs the checksum chain of package referent: it watches the custom resources of the configuration, keeps
// their graph up to date, and answers what the state of a custom resource is.
//
//	configuration ── Configure ─┐
//	watches of resources ───────┤   one goroutine owns the graph: it applies what
//	events of config objects ───┤   has gathered, evaluates, has missing content
//	reads of their content ─────┘   read, and reports what has changed
//	                              │
//	                              ├─► States: what the loop and the webhook ask for
//	                              └─► Events: the loop queues the workloads concerned
//
// Store and Admission put custom resources beside ConfigMaps and Secrets: the loop and the webhook treat all of them alike.
// Without a configured resource nothing is watched and nothing runs but a goroutine that waits.
//
// The state of a custom resource is that of the graph, which follows the watches: other than that of a ConfigMap or a Secret
// that a workload names, it is not read live at admission. A release that changes a custom resource or what it refers to
// within the debounce before the workload can therefore restart the pods once more.
package chain
