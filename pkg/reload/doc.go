// Package reload is the loop: it notices that the configuration of a workload has changed and asks for its reload.
//
//	config object ─┐ metadata event
//	               ▼
//	            Index ──► queue of workloads ──► Reconcile ──► policy.Decide ──► gates ──► poke (or direct write)
//	               ▲                                 │
//	workload ──────┘ event                           └── Record, Events, metrics
//
// The queue is keyed by workload: ten changed objects are one item, and a workload that cannot be written backs off
// alone. What is due is found by comparing, never by counting events, so that nothing depends on having seen them. All
// decisions are made by the pure packages; this one gathers what they need and does what they say.
package reload
