package controlplane

import (
	"slices"
	"strings"
)

// inherited returns what processes take from the environment of this one: what programs need on any machine, and settings of the Go
// runtime and of client-go. The rest stays here: a KUBERNETES_NAMESPACE or an ALERT_WEBHOOK_URL, as in a pod of CI, would change the
// program under test, and an ETCD_NAME etcd.
func inherited(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "HOME", "PATH", "TMPDIR", "TZ", "KUBE_CACHE_MUTATION_DETECTOR":
			return false
		default:
			return !strings.HasPrefix(name, "GO")
		}
	})
}
