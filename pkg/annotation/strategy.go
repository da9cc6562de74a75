package annotation

// ReloadStrategy is what a reload writes on a pod template besides the hash, for compatibility with Stakater's Reloader.
// The hash and the Record are maintained under each of them.
type ReloadStrategy string

const (
	// ConfigHash writes nothing besides the hash. It is the default.
	ConfigHash ReloadStrategy = "config-hash"
	// Annotations writes reloader.stakater.com/last-reloaded-from.
	Annotations ReloadStrategy = "annotations"
	// EnvVars sets STAKATER_<NAME>_<KIND> in the container that uses the object.
	EnvVars ReloadStrategy = "env-vars"
)
