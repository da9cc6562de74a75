// Package simulate runs the whole program, pkg/app.Run, among models of everything around it, and looks for histories that
// break a promise.
//
// Several replicas run in one process inside a testing/synctest bubble: time is fake, and stands still while anything has
// work to do. They speak HTTP over connections in memory (memnet) to a model of the API server (apiserver). Models of the
// workload controllers and the kubelet (cluster) keep the pods, users act (act), faults happen (fault.go), and the oracle
// judges what it sees by the product's promises. A seed makes a history (history): the steps, and every choice of the
// scheduler.
//
// The scheduler (scheduler.go) serves one request at a time. Each request to the API server waits at the gate; when
// everything in the bubble is at rest, the seed decides which one goes on, which waits, and which fails. What is left to
// chance are map order, select and the order in which goroutines run; the trace of decisions is recorded, and a replay
// follows it.
package simulate
