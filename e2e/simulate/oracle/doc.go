// Package oracle judges what happens in the simulator by the promises of pod-reloader.
//
// It sees every stored change, every request and its answer, the faults and the metrics, and compares them with what a user
// may expect. It shares no code with the program and knows nothing of digests, Records or any other annotation that the
// program writes: only the annotations and labels of users, pods, contents, Events and metrics.
//
// The ledger (ledger.go) records what happens, in parts by subject: faults (calm.go), config objects and custom resources (config.go),
// workloads (workload.go), Jobs (job.go), Events (event.go) and pods (pod.go). Each law is a struct in a file of its own (law_*.go): it
// reads the ledger, and reacts to the moments of the interface law. The order of the laws in New is that of what they find. The rule
// for all of them: where it is ambiguous what the program could know, the oracle does not judge.
// Describe counts what was judged and what was excused, so that an oracle that sees nothing is noticed.
//
// The central notion is the belief. A stamp is a change of a workload's pod template, be it of what users see there or of
// the program's annotations. What the program may take for the content of the pods of a stamp is a set of contents: those
// between the arrival of the request and its commit, if the webhook surely saw it; more if it may not have seen it. A
// content outside of the set is a change that the program must act on; a set of only one content, equal to the present one,
// is no cause for a restart.
//
// What is not judged:
//   - Workloads with annotations of the second dialect that the oracle does not know, and with more than 1,000 listed objects.
//   - The pods of Jobs, and Jobs that a write of the program has adopted.
//   - Whether pods follow a new template, where a pause, OnDelete, a partition or a pod that does not run may keep them.
//   - Pods that started with a content that was there for a moment only: the program knows nothing of pods.
//   - What changed before the program had a chance to look: for 20 seconds after a write that the webhook may not have seen, unless it
//     leaves the record and the hash alone, after an edit of the lists in direct mode, and after the creation of a required object. A
//     restart within that time is judged where nothing has changed meanwhile, and nothing disturbs the program.
//   - What changed after a digest key was lost, until the program writes the workload again, for two minutes, or for longer
//     where managed annotations or a record of the lost key came back and a Warning Event says so.
//   - Replaced pods after an edit of the lists, after managed annotations were edited where the webhook may not have seen it, after a
//     release outside of the program's scope, and in the sequences that the documentation names as limits.
//   - Time, as long as a fault touches the workload, and for a minute after it, six minutes after a denial. Watches that are
//     opened again, slow requests in the same namespace, and users who write the same workload again and again put the bound
//     off, too.
//   - A change in the last half of the settle time: the program may have read it before the watch event came.
//   - What happened after a snapshot that is restored later, and workloads that are in scope or not by labels of a namespace which a restore
//     may have changed unseen.
//   - Conflicts of users with writes of the program.
package oracle
