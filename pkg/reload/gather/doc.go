// Package gather reads what decides about a workload: its annotations, the state of its config objects and the digest keys. It owns the
// Subject, the workload under reconciliation, which the decisions and the writes are about. It reads, and writes nothing; what follows from
// what it has read, package policy decides.
package gather
