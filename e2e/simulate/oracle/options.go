package oracle

import (
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Options say what is judged. The zero value of a field means its default.
type Options struct {
	// Settle, SettleMax and Refractory are the flags of the program. Timing overrides them for a replica.
	Settle, SettleMax, Refractory time.Duration
	// Lease and Retry are the flags about the leader's lease; default 15 s and 1 s.
	Lease, Retry time.Duration
	// Slack is added to the time in which a reload must happen; default 5 s.
	Slack time.Duration
	// Direct means that the program has no webhook.
	Direct bool
	// WebhookName is the name of the program's webhook; default "mutate.pod-reloader.cs.sap.com".
	WebhookName string
	// Prefix is that of annotations and labels; default "pod-reloader.cs.sap.com/".
	Prefix string
	// KeySecret is the Secret with the digest keys; default pod-reloader/pod-reloader-digest-key.
	KeySecret world.Key
	// InScope reports whether the flags select a workload; default is everything outside of kube-system.
	InScope func(namespace string, namespaceLabels, objectLabels map[string]string) bool
	// CustomKind is true if the flags name the custom kind of workloads: rollouts.argoproj.io with its template at spec.template.
	CustomKind bool
	// Ignored are the resources of workloads that the flags take away.
	Ignored []string
	// Hidden are the config objects that the flags hide.
	Hidden Hidden
	// Configuration is the ConfigMap with the structured configuration that the flags name; none by default.
	Configuration world.Key
	// Program reports whether a client is a replica of the program; default are names that begin with "replica-".
	Program func(client string) bool
	// Second reports whether a replica is one of the second installation, which has the same digest key; default is that there is none.
	Second func(client string) bool
	// Sides says which of two installations select a workload by their flags; nil where there is one installation. Then InScope follows
	// from it.
	Sides func(namespace string, namespaceLabels, objectLabels map[string]string) Sides
	// HalfRead means that the second installation reads no annotations of Reloader: it tracks nothing of workloads that have no others.
	HalfRead bool
	// Foreign removes what other webhooks add to a workload; default is nothing. It returns a copy if it changes something.
	Foreign func(world.Object) world.Object
	// ReloadMissingRequired is true for --missing-required=reload, Revision for --hash=revision.
	ReloadMissingRequired, Revision bool
	// AutoReloadAll is true for --auto-reload-all.
	AutoReloadAll bool
	// ReloadOnCreate is true for --reload-on-create, ReloadOnDelete for --reload-on-delete.
	ReloadOnCreate, ReloadOnDelete bool
	// RerunFinished is true for --rerun-finished-jobs.
	RerunFinished bool
	// Strategy is what --reload-strategy adds to a restart: annotations or env-vars; empty for nothing.
	Strategy string
}

func (o Options) complete() Options {
	if o.Slack == 0 {
		o.Slack = 5 * time.Second
	}
	if o.Lease == 0 {
		o.Lease = 15 * time.Second
	}
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.WebhookName == "" {
		o.WebhookName = "mutate.pod-reloader.cs.sap.com"
	}
	if o.Prefix == "" {
		o.Prefix = "pod-reloader.cs.sap.com/"
	}
	if o.KeySecret.Name == "" {
		o.KeySecret = world.Key{Resource: world.Secrets, Namespace: "pod-reloader", Name: "pod-reloader-digest-key"}
	}
	if o.Sides != nil {
		o.InScope = func(namespace string, namespaceLabels, objectLabels map[string]string) bool {
			return o.Sides(namespace, namespaceLabels, objectLabels) != Sides{}
		}
	}
	if o.InScope == nil {
		o.InScope = func(namespace string, _, _ map[string]string) bool { return namespace != "kube-system" }
	}
	if o.Program == nil {
		o.Program = func(client string) bool { return strings.HasPrefix(client, "replica-") }
	}
	if o.Second == nil {
		o.Second = func(string) bool { return false }
	}
	if o.Foreign == nil {
		o.Foreign = func(object world.Object) world.Object { return object }
	}
	return o
}

// timing has the gates of one process.
type timing struct{ settle, settleMax, refractory time.Duration }

// Names of the annotations and labels, below the prefix.
const (
	configMapList     = "configmaps"
	secretList        = "secrets"
	requestAnnotation = "config-hash"
	reloadAnnotation  = "last-reload"
	ignoredLabel      = "ignored"
	disabledLabel     = "disabled"
)
