package controlplane

import (
	"cmp"
	"io"
	"os"
)

// The newest and the oldest release of Kubernetes that the tests run on.
const (
	Newest = "1.36"
	Oldest = "1.32"
)

// Options of a control plane; the zero value works.
type Options struct {
	// Version is the release of Kubernetes, like "1.36": one for which there is a module
	// e2e/tools/kubernetes-<version>. Empty means that of the environment variable K8S_VERSION,
	// else [Newest].
	Version string
	// Nodes is how many nodes KWOK plays; 0 means 3.
	Nodes int
	// Audit says whose requests the audit log records.
	Audit AuditPolicy
	// Without names components that are not to run. Without KWOK there are no nodes.
	Without []string
	// Args are further flags by component.
	Args map[string][]string
	// Env is added to the environment of every component, as NAME=value.
	Env []string
	// Proxied names components that get a [Proxy] to what is next, to slow them down: etcd one between itself and the API
	// server, the others one between themselves and the API server. To slow the API server down for one client, put a
	// Proxy before [ControlPlane.Address].
	Proxied []string
	// WebhookClient is the common name of a client certificate, signed by [ControlPlane.CA], that the API server shows to
	// mutating webhooks; empty means none.
	WebhookClient string
	// KeepLogs is a directory under which the logs, the audit log too, stay; empty means that of the environment
	// variable KEEP_LOGS, and if that is empty too they go with everything else.
	KeepLogs string
	// Progress is where the building of programs is reported; nil means standard error.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, os.Getenv("K8S_VERSION"), Newest)
	o.KeepLogs = cmp.Or(o.KeepLogs, os.Getenv("KEEP_LOGS"))
	o.Nodes = cmp.Or(o.Nodes, 3)
	return o
}
