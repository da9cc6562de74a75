// Package reload is the loop: it notices that the configuration of a workload has changed and asks for its reload.
//
//	config object ─┐ metadata event
//	               ▼
//	           tracking ──► queue of workloads ──► loop.Reconcile ──► policy.Assess ──► pacing ──► actions ──► closing
//	               ▲                                                                    gates      poke, or
//	workload ──────┘ event                                                                         direct write
//
// The queue is keyed by workload: ten changed objects are one item, and a workload that cannot be written backs off
// alone. What is due is found by comparing, never by counting events, so that nothing depends on having seen them. All
// decisions are made by the pure packages; this one gathers what they need and does what they say.
//
// What it stands on are packages that work without it:
//
//   - state has what is kept per workload, a type for each concern, with the gates and the pace of retries.
//   - index finds the workloads that a config object concerns; queue has what to look at next.
//   - tracking has the watched kinds and namespaces, and makes up for watches that fail.
//   - report emits Events and alerts, and counts reloads.
//
// The loop itself:
//
//   - loop wires the parts; reconcile looks at one workload. gather reads what decisions depend on; pacing holds back what is due.
//   - actions adopt, request a reload or stamp directly, through the writer, which bounds the writes in flight. Beside the
//     stamp they pause a Deployment (pausing.go), run a CronJob (running.go), or restart an Argo Rollout (restart.go). A Job is
//     created again instead (recreate.go); what a leader has begun of that, the next one ends (recreation.go, resume.go).
//   - closing has the outcomes that actions return, and what follows from each; problems reports what needs a user, failure what follows from an error.
package reload
