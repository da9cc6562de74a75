package installation

import (
	"cmp"
	"slices"

	"k8s.io/client-go/rest"
)

// Options of an installation; the zero value is the default installation of manifests/ with its two replicas.
type Options struct {
	// Replicas is how many processes are started; 0 means as many as the manifests say, less than 0 none: then
	// AddReplica starts them, and the webhook is in effect some time after.
	Replicas int
	// Args are further arguments of every replica; they follow those of the manifests and so go before them.
	Args []string
	// Env is added to the environment of every replica, as NAME=value.
	Env []string
	// KeepRunning starts replicas again that end by themselves, as the kubelet does: where the API server or the machine
	// stalls for long, the leader loses its lease and ends. Any other end by itself fails the test. It is not for tests that stop
	// replicas, but for removing them.
	KeepRunning bool
	// Patient has the API server wait for the webhook as long as it may, half a minute: after the three seconds of the manifests,
	// a write on a machine that stalls passes without a stamp. It is not for tests of a webhook that does not answer.
	Patient bool
	// LongLease has the leader keep its lease for a minute in which it cannot renew it: where another replica takes over, or the
	// process has ended and started again, counters begin at zero. It is not for tests in which a leader ends.
	LongLease bool
	// Parallel is how many tests Main runs at once, where they wait more than those of other suites; 0 means 3.
	Parallel int
	// Components are directories of manifests/components to add, like "namespaced". Its namespace my-app is created.
	Components []string
	// WithoutWebhook is direct mode: the component without-webhook, and no balancer.
	WithoutWebhook bool
	// Program is the path of the executable; empty means that the program is built from the working tree.
	Program string
	// Connect changes how the replicas reach the API server, for example through a proxy.
	Connect func(*rest.Config)
	// Namespace is where canaries live ([Installation.Quiet]): it must be in the scope of the installation. Empty means
	// my-app with the component namespaced, else [CanaryNamespace], which has the label pod-reloader=enabled.
	Namespace string
	// Prefix is that of the annotations, for the program and in the manifests; empty means the default.
	Prefix string
}

// CanaryNamespace is the namespace that has nothing but canaries.
const CanaryNamespace = "pod-reloader-canary"

const (
	namespaced     = "namespaced"
	withoutWebhook = "without-webhook"
	defaultPrefix  = "pod-reloader.cs.sap.com/"
)

func (o Options) withDefaults() Options {
	o.Components = slices.Clone(o.Components)
	if o.WithoutWebhook && !slices.Contains(o.Components, withoutWebhook) {
		o.Components = append(o.Components, withoutWebhook)
	}
	o.WithoutWebhook = slices.Contains(o.Components, withoutWebhook)
	if slices.Contains(o.Components, namespaced) {
		o.Namespace = cmp.Or(o.Namespace, "my-app")
	}
	o.Namespace = cmp.Or(o.Namespace, CanaryNamespace)
	if o.LongLease {
		o.Args = append([]string{"--leader-election-lease-duration=75s", "--leader-election-renew-deadline=60s"}, o.Args...)
	}
	if o.Prefix = cmp.Or(o.Prefix, defaultPrefix); o.Prefix != defaultPrefix {
		o.Args = append([]string{"--annotation-prefix=" + o.Prefix}, o.Args...)
	}
	return o
}
