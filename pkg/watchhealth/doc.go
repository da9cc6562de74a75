// Package watchhealth reports which lists and watches of a client do not work.
//
// A watch that is refused, that never gets an answer, or that stays silent looks like a watch of a cluster in which nothing
// changes: client-go retries it and logs a line. A [Monitor] sits in the transport of the client, below all reflectors, so
// that it sees the watches of informers and of hand-written clients in the same way. It does two things: it bounds how long
// a request may wait for its answer, and it keeps the state of each watch for metrics, Events and the slow re-check of what
// the watch would have reported.
//
// It knows nothing of workloads or configuration: it is below pkg/app, which connects it, and imports nothing of this
// project.
package watchhealth
