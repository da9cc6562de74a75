package toolchain

import (
	"os"
	"slices"
	"strings"
)

// Inherited returns what processes take from the environment of this one: what programs need on any machine, and settings of the Go
// runtime and of client-go. The rest stays here: a KUBERNETES_NAMESPACE or an ALERT_WEBHOOK_URL, as in a pod of CI, would change the
// program under test, and an ETCD_NAME etcd.
func Inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "HOME", "PATH", "TMPDIR", "TZ", "KUBE_CACHE_MUTATION_DETECTOR":
			return false
		default:
			return !strings.HasPrefix(name, "GO")
		}
	})
}

// ShortLived is Inherited for a Go program that ends soon, with some more variables: collecting garbage, and moving between processors,
// would take a part of its processor time, of which tests are short.
func ShortLived(more ...string) []string {
	return append(append(Inherited(), "GOGC=off", "GOMEMLIMIT=400MiB", "GOMAXPROCS=1"), more...)
}

// Helm returns the variables by which Helm uses a kubeconfig, and keeps all its files in a directory: the plugins and repositories of the
// user of this machine have no effect.
func Helm(home, kubeconfig string) []string {
	return []string{"KUBECONFIG=" + kubeconfig, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
}
