package options

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Environment is what defaults depend on besides the flags.
type Environment struct {
	// Getenv is os.Getenv.
	Getenv func(string) string
	// ContextNamespace returns the namespace of the context of a kubeconfig, whose path may be empty; nil where there is none.
	ContextNamespace func(kubeconfig string) (string, error)
	// ServiceAccountNamespace is the path of the file with the namespace of the pod's service account.
	ServiceAccountNamespace string
}

// OSEnvironment is the environment of a process in a cluster or outside.
func OSEnvironment() Environment {
	return Environment{
		Getenv:                  os.Getenv,
		ServiceAccountNamespace: "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
	}
}

// OwnNamespace returns the namespace of the installation whose pod the program runs in; empty where nothing defines one, as outside of
// a cluster.
func (e Environment) OwnNamespace() string {
	namespace, _ := e.ownNamespace()
	return namespace
}

// ownNamespace returns also the variable that defines the namespace; empty if the service account does.
func (e Environment) ownNamespace() (namespace, variable string) {
	for _, variable := range []string{podNamespace, reloaderNamespace} {
		if namespace := e.Getenv(variable); namespace != "" {
			return namespace, variable
		}
	}
	account, _ := os.ReadFile(e.ServiceAccountNamespace) // there is none outside of a cluster
	if namespace := strings.TrimSpace(string(account)); namespace != "" {
		return namespace, ""
	}
	// Where there is no such file, the only namespace to handle is Reloader's own.
	return e.Getenv(kubernetesNamespace), kubernetesNamespace
}

// contextNamespace returns the namespace that kubectl would take by default; empty if there is none.
func (e Environment) contextNamespace(kubeconfig string) (string, error) {
	if e.ContextNamespace == nil {
		return "", nil
	}
	return e.ContextNamespace(kubeconfig)
}

// The variables that say which pod the program runs in.
const (
	podNamespace = "POD_NAMESPACE"
	podName      = "POD_NAME"
)

// The variables that Reloader's chart sets.
const (
	kubernetesNamespace     = "KUBERNETES_NAMESPACE"
	reloaderNamespace       = "RELOADER_NAMESPACE"
	reloaderDeployment      = "RELOADER_DEPLOYMENT_NAME"
	metricsCountByNamespace = "METRICS_COUNT_BY_NAMESPACE"
)

// reloaderMetrics is where Reloader serves metrics, and where its chart probes /live and /metrics.
const reloaderMetrics = ":9090"

// Variable is an environment variable that the program reads.
type Variable struct{ Name, Usage string }

// Variables are those that stand for settings, in the order of the help text.
func Variables() []Variable {
	return []Variable{
		{"POD_NAMESPACE", "namespace of this installation; else " + reloaderNamespace},
		{"POD_NAME, POD_UID", "the pod that the program runs in"},
		{podMemoryLimit, "memory limit of the container in bytes: the Go runtime gets 90 % of it, unless GOMEMLIMIT is set"},
		{"GOGC", "how often the garbage collector runs (default 50): a larger number takes less processor time and more memory"},
		{kubernetesNamespace, "the only namespace to handle, unless --namespaces is set"},
		{reloaderDeployment, "name of this installation's Deployment, unless --installation-name is set"},
		{metricsCountByNamespace, "enabled: count reloads by namespace, too"},
		{alertOnReload, "true: post an alert about each reload"},
		{alertSink, "format of alerts: slack, teams, gchat or webhook (default webhook)"},
		{alertURL, "where alerts are posted; it is treated as a secret"},
		{alertProxy, "proxy on the way there"},
		{alertInfo, "text before each alert, such as the name of the cluster"},
	}
}

// countByNamespace reports whether reloads are counted for each namespace.
func countByNamespace(env Environment) bool { return env.Getenv(metricsCountByNamespace) == "enabled" }

// podMemoryLimit is the variable with the memory limit of the container, from the downward API, which cannot compute.
const podMemoryLimit = "POD_MEMORY_LIMIT"

// memoryLimit returns 90 % of the container's memory limit. The rest is for what the Go runtime does not count, such as the
// program itself. The collector then works harder before the kernel ends the process.
func memoryLimit(p *problems, env Environment) int64 {
	text := env.Getenv(podMemoryLimit)
	if text == "" || env.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		p.variable(podMemoryLimit, fmt.Errorf("%s: want a number of bytes", reference.Quote(text)))
		return 0
	}
	return limit / 10 * 9
}
