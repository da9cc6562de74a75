package explain

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
)

// foreign says that what is known of the workload was not made with a key of the Secret of the installation; empty if it was, or if the
// hash proves the present state without a key, as a revision digest can.
func foreign(in Input, assessment policy.Assessment) string {
	if in.Ring.Empty() || assessment.Proven() {
		return ""
	}
	if id := assessment.Verdict.Foreign; id != "" && in.View.Known().Hash == "" {
		return fmt.Sprintf("the config-record is under digest key %s, which is not in the Secret %s", id, in.KeySecret)
	}
	key, hashed := digest.KeyOf(in.View.Known().Hash)
	if _, owned := in.Ring.Key(key); !hashed || owned {
		return ""
	}
	return fmt.Sprintf("the config-hash is not made with a key of the Secret %s: it is another program's, a revision digest, or made under a lost key",
		in.KeySecret)
}

// foreignAdvice says what to do about a foreign key.
const foreignAdvice = ": name the Secret of the installation that handles the workload with --installation-namespace and --digest-key-secret. " +
	"If two installations handle it, let one of them do so, or give both the same digest key Secret. " +
	"If the key is lost, or there was none, pod-reloader adopts the workload again, and nothing restarts"
