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
// The parts of a Chain:
//
//	inbox      what has gathered for the evaluator
//	graphState the graph, and all else that questions are answered from: what is configured, and the history of the nodes
//	liveReader the live reads of custom resources, and of what is below them
//	evaluator  the goroutine that owns the graph, and the parts that it alone uses:
//	  sources    the watches of custom resources
//	  reads      the reads of the config objects that they refer to
//	  publisher  the writes of digests into custom resources, while this process leads
//	  lifetime   what was begun under a configuration, and ends with it
//	notifier   the calls of handlers, for what has changed
//
// Between a change and its report lies one debounce, however deep the graph is: the reads and writes that an evaluation begins
// are taken in as soon as they end. Reads begin once per debounce at most.
//
// Store and Admission put custom resources beside ConfigMaps and Secrets: the loop and the webhook treat all of them alike.
// Without a configured resource nothing is watched and nothing runs but a goroutine that waits.
//
// At admission, a custom resource and what is below it are read live, up to 50 objects, so that a stamp is not older than the
// request: in a graph made for the question. Which objects refer to another one is known from the watches only.
package chain
