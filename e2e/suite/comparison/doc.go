// Package comparison holds an end-to-end test for each way in which SAP's pod-reloader is known to break, each naming how its
// design fails there. Ways that a promise excludes are tested with it in suite/promise (fields that no library knows, edits
// of metadata, restores), the labels that exclude a workload in suite/edge. The tests run on a real control plane with the
// program as shipped.
package comparison
