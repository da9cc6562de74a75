// Package reload is the loop: it notices that the configuration of a workload has changed and asks for its reload.
//
//	config object ─┐ metadata event
//	               ▼
//	           tracking ──► queue of workloads ──► loop.Reconcile: gather ──► policy.Assess ──► pacing ──► action
//	               ▲                                                                            gates
//	workload ──────┘ event
//
// The queue is keyed by workload: ten changed objects of a workload are one item, and retries of one workload delay no other.
// The loop compares states and does not count events, so that it also finds a change whose event it has missed. The pure
// packages make all decisions; this package gathers their input and applies their results.
//
// It imports the packages below. They work without it, and each imports only those before it:
//
//   - state has what is kept per workload, a type for each concern, with the gates and the pace of retries.
//   - index finds the workloads that a config object concerns; queue has what to look at next.
//   - tracking has the watched kinds and namespaces, and makes up for watches that fail.
//   - report emits Events and alerts, and counts reloads.
//   - gather reads what decisions depend on, and has the Subject, the workload under reconciliation.
//   - action writes what was decided, and ends the reconciliation.
//
// The loop itself:
//
//   - loop wires the parts, and options has what it is given.
//   - reconcile looks at one workload and decides, pacing holds back what is due.
//   - problem reports what needs a user; metrics counts Verdicts and shows what is due.
package reload
