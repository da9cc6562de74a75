// Package reload is the loop: it notices that the configuration of a workload has changed and asks for its reload.
//
//	config object ─┐ metadata event
//	               ▼
//	           tracking ──► queue of workloads ──► loop.Reconcile: gather ──► policy.Assess ──► pacing ──► action
//	               ▲                                                                            gates
//	workload ──────┘ event
//
// The queue is keyed by workload: ten changed objects are one item, and a workload that cannot be written backs off
// alone. What is due is found by comparing, never by counting events, so that nothing depends on having seen them. All
// decisions are made by the pure packages; this one gathers what they need and does what they say.
//
// What it stands on are packages that work without it, each importing only those before it:
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
