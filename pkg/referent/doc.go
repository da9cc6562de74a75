// Package referent computes the checksum chain: one checksum for each custom resource, over everything that it refers
// to, from the leaves up to the resource that a workload runs with. A workload is restarted if and only if a valid graph
// has changed.
//
// The package is pure. A Schema is the compiled configuration: the resources, and the edges between them.
package referent
