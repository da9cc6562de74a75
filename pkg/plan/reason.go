package plan

// Reason names a reason for a difference.
type Reason string

// The rules of Reloader that this program has otherwise, in the order in which they are looked for.
const (
	byScope           Reason = "namespace"
	byObjectSelector  Reason = "object-selector"
	byExcluded        Reason = "excluded-label"
	byKind            Reason = "kind"
	bySecrets         Reason = "secrets"
	byJob             Reason = "job"
	bySuspended       Reason = "suspended"
	byConcurrency     Reason = "concurrency"
	byAutoFalse       Reason = "auto-false"
	byWholeName       Reason = "expression"
	byRejected        Reason = "rejected-item"
	byLimit           Reason = "limit"
	byReferences      Reason = "reference"
	bySAP             Reason = "sap-annotations"
	bySwitch          Reason = "flag-value"
	byOneKind         Reason = "resources-to-ignore"
	byRequiredCreated Reason = "required-created"
	byDeletedVariable Reason = "deleted"
)

// The other reasons.
const (
	// byPausePeriod is a pause that only one of the programs makes.
	byPausePeriod Reason = "pause-period"
	// byPaused is a pause that Reloader has not ended.
	byPaused Reason = "paused"
	// byUnnamedObject is a config object that no workload depends on.
	byUnnamedObject Reason = "unnamed-object"
	// byProblem is something wrong in an annotation.
	byProblem Reason = "problem"
)

// rules returns the rules that can be exchanged in the model of Reloader.
func rules() []Reason {
	return []Reason{
		byScope, byObjectSelector, byExcluded, byKind, bySecrets, byJob, bySuspended, byConcurrency, byAutoFalse, byWholeName,
		byRejected, byLimit, byReferences, bySAP, bySwitch, byOneKind, byRequiredCreated, byDeletedVariable,
	}
}
