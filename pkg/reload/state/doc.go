// Package state has what the loop keeps of each workload while it runs, and how long the workload waits because of that: for its
// configuration to settle, for a failure to pass, for its last reload to be long enough ago.
package state
