// Package action does to a workload what was decided about it. It owns all writes of the loop: how many are in flight, what each contains,
// what its failure means, and how the reconciliation of the workload ends.
//
//	Reload ──┬─► request ──► the webhook stamps; where none handles the write ──► stamp
//	         ├─► stamp       the pod template and the Record, as the webhook would (no webhook)
//	         ├─► restart     spec.restartAt of an Argo Rollout
//	         ├─► recreate    a Job: store its manifest in a Secret, delete it, create it; any leader ends what another has begun
//	         └─► notify      the Record only (--webhook-url)
//	Adopt    ──► the Record: what is there now is what the pods have
//	UpToDate ──► what is left where nothing is due
//	EndPause ──► the end of a pause that a reload began
//
// Jobs are created again by recreations, which begins with one, completions, which ends what any leader has begun, and resumption, which
// finds that at start. The Secrets between them are those of manifests.
//
// Beside the stamp, a reload runs a CronJob (runs) or pauses a Deployment (pauses) where an annotation asks for that.
//
// Each returns an Outcome, which Close records and reports. The package does not decide when a reload is due, nor which workload is next:
// that is package reload. It reads through package gather and keeps what it must remember in package state.
package action
