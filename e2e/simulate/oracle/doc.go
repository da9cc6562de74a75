// Package oracle judges what happens in the simulator by the promises of pod-reloader.
//
// It sees every stored change, every request and its answer, the faults and the metrics, and compares them with what a user
// may expect. It shares no code with the program and knows nothing of digests, Records or any other annotation that the
// program writes: only the annotations and labels of users, pods, contents, Events and metrics.
//
// The ledger (workload.go, stamp.go, belief.go, content.go, pod.go, fault.go) keeps what is known; each law is a file of its
// own (law_*.go). The rule for all laws: where it is ambiguous what the program could know, the oracle does not judge.
// Describe counts what was judged and what was excused, so that an oracle that sees nothing is noticed.
//
// The central notion is the belief. A stamp is a change of a workload's pod template, be it of what users write there or of
// the program's annotations. What the program may take for the content of the pods of a stamp is a set of contents: those
// between the arrival of the request and its commit, if the webhook surely saw it; more if it may not have seen it. A
// content outside of the set is a change that the program must act on; a set of only one content, equal to the present one,
// is no cause for a restart.
package oracle
