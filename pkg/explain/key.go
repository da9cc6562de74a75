package explain

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
)

// foreign says under which digest key the workload is known that the Secret of the installation lacks; empty if it has the key.
func foreign(in Input, verdict policy.Verdict) string {
	what, id := "config-record", verdict.Foreign
	if key, ours := digest.KeyOf(in.View.Known().Hash); ours && id == "" {
		if _, owned := in.Ring.Key(key); !owned {
			what, id = "config-hash", key
		}
	}
	if id == "" || in.Ring.Empty() {
		return ""
	}
	return fmt.Sprintf("the %s is under digest key %s, which is not in the Secret %s", what, id, in.KeySecret)
}

// foreignAdvice says what to do about a foreign key.
const foreignAdvice = ": name the Secret of the installation that handles the workload with --installation-namespace and --digest-key-secret. " +
	"If two installations handle it, let one of them do so, or give both the same digest key Secret. " +
	"If the key is lost, pod-reloader adopts the workload again, and nothing restarts"
