// Package options turns the command line into one validated struct.
//
// All that is wrong is reported at once, each problem by the name of its flag. Flags that SAP's pod-reloader has keep
// their names and meanings, and may be written with one dash as there. Nothing is read from the environment but what the
// caller passes in.
package options

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Options are the validated settings of the manager.
type Options struct {
	// Kubeconfig is the path of a client configuration; empty means KUBECONFIG, or ~/.kube/config; if there is none, the
	// cluster's own.
	Kubeconfig string
	// Namespace is the installation's own: the digest key and, by default, the lease are there.
	Namespace string
	// Installation is the name of the installation's Deployment: its lease has the same by default, and Events about the installation
	// itself are on it.
	Installation string
	// DigestKeySecret is the name of the Secret with the digest keys.
	DigestKeySecret string
	Servers         Servers
	Webhook         Webhook
	Election        Election
	Selection       Selection
	// Pod is the one that the program runs in, as far as the environment says.
	Pod    Pod
	Reload Reload
	// PlainSecrets makes what Reload.Strategy writes for a Secret a plain digest of its content, not a keyed one.
	PlainSecrets bool
	// Alerts says where an alert about each reload goes, or about each change with Reload.NotifyOnly; nil where none is wanted.
	Alerts *alert.Config
	// MemoryLimit is where the garbage collector begins to work harder, in bytes; 0 leaves it to the Go runtime, which reads GOMEMLIMIT.
	MemoryLimit int64
	// ShutdownGracePeriod is how long admission is served after SIGTERM, while the endpoint drains.
	ShutdownGracePeriod time.Duration
	Logging             Logging
}

// Pod names the program's own pod. Name is empty outside of a cluster.
type Pod struct {
	Namespace, Name, UID string
}

// Servers are the listeners besides the webhook's. An address of "0" switches a server off.
type Servers struct {
	MetricsAddress string
	// MetricsSecure serves metrics by TLS, to those whom the API server lets get them.
	MetricsSecure bool
	ProbeAddress  string
	// PprofAddress is "0" unless profiling is switched on.
	PprofAddress string
}

// Webhook says how admission is served.
type Webhook struct {
	// Enabled is false in direct mode: then the loop writes the managed annotations itself.
	Enabled bool
	Address string
	// Directory holds tls.crt and tls.key, where the Certificate is in files.
	Directory   string
	Certificate Certificate
	// MinTLSVersion is one of the constants of crypto/tls.
	MinTLSVersion uint16
	HTTP2         bool
	// ClientCA is the path of the authority of client certificates; empty: callers need none.
	ClientCA string
	// ClientNames are the common names that callers may have; empty: any that ClientCA has signed.
	ClientNames []string
}

// CertificateMode says who makes the certificate of the webhook.
type CertificateMode string

// The modes.
const (
	// CertificateFiles reads the certificate from files, which another program makes, like cert-manager.
	CertificateFiles CertificateMode = "files"
	// CertificateSelfManaged makes it, and sets the caBundle.
	CertificateSelfManaged CertificateMode = "self-managed"
)

// Certificate says where the certificate of the webhook comes from. All but Mode is for CertificateSelfManaged.
type Certificate struct {
	Mode CertificateMode
	// Secret is the name of the Secret with the certificates, WebhookConfiguration that of the MutatingWebhookConfiguration.
	Secret, WebhookConfiguration string
	// DNSNames are those that the API server may ask for. They are required of a certificate in files if a flag says them: the
	// default is a guess, since the configuration of the webhook may have an address in place of a Service.
	DNSNames      []string
	NamesRequired bool
	// Lifetime is that of the certificate, CALifetime that of its CA.
	Lifetime, CALifetime time.Duration
}

// Election says whether replicas elect a leader for the loop.
type Election struct {
	Enabled   bool
	Namespace string
	// Lease is the name of the lease.
	Lease string
	// LeaseDuration is how long a lease is valid after its last renewal, RenewDeadline how long a leader that cannot renew it
	// goes on, RetryPeriod how often the leader renews it and the others look.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Selection says which workloads are handled, and by which annotations.
type Selection struct {
	// WithoutSecrets means that Secrets are not handled, in either dialect, and no permissions on them are needed.
	WithoutSecrets bool
	Keys           annotation.Keys
	// Stakater is the dialect of Stakater's Reloader.
	Stakater annotation.Stakater
	// WithoutStakater says that its annotations are not read.
	WithoutStakater bool
	// Kinds are the built-in ones and those of the flags.
	Kinds workload.Kinds
	// IgnoredKinds are the built-in ones that a flag excludes.
	IgnoredKinds workload.Kinds
	Scope        scope.Scope
	// Configuration is where there may be more kinds; zero if nowhere.
	Configuration configuration.Location
}

// Reload says when the loop reloads what.
type Reload struct {
	// Settle is the quiet time before a reload, SettleMax the most that it is put off; 0 switches the gate off.
	Settle, SettleMax time.Duration
	// Refractory is the minimum time between two reloads of one workload; 0 switches the gate off.
	Refractory time.Duration
	// Strategy is what a reload writes on a pod template besides the hash.
	Strategy annotation.ReloadStrategy
	// Settings are those that the webhook decides by, too. With NotifyOnly, Options.Alerts says where to post what changed.
	stamp.Settings
	// RerunFinishedJobs creates also Jobs again that have finished.
	RerunFinishedJobs bool
	// WithoutRuns leaves CronJobs to their next run, whatever their annotations ask for and the permissions allow.
	WithoutRuns bool
	Workers     int
	// CountByNamespace counts reloads by namespace, which is a label without a bound.
	CountByNamespace bool
}
