// Package sequence holds end-to-end tests of the courses of events in which a naive design restarts too much, too
// little, or rejects a user's write. Each runs on a real control plane with the program as shipped.
package sequence
