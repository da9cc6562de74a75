// Package watch shows on a real API server what the tests of pkg/watch show on
// one in memory: selectors and their transitions, streamed and plain lists,
// relists after a compaction, deletions that were missed, a server that goes
// away. It has tests only.
package watch
