package options

import (
	"time"

	"github.com/spf13/pflag"
)

// Group is a set of flags under one title of the help text.
type Group struct {
	Title string
	Set   *pflag.FlagSet
}

// Flags are the settings as they are written, before validation.
type Flags struct {
	groups []Group
	all    *pflag.FlagSet
	// kept are the flags that a tool does not take over from an installation.
	kept map[string]bool

	selection                           selectionFlags
	settle, settleMax, refractory       time.Duration
	missingRequired                     string
	workers                             int
	stakater                            stakaterFlags
	webhook                             webhookFlags
	hash, digestKeySecret               string
	kubeconfig, namespace, installation string
	election                            electionFlags
	servers                             serverFlags
	logs                                logFlags
}

// NewFlags returns the flags with their defaults.
func NewFlags() *Flags {
	f := &Flags{all: pflag.NewFlagSet("pod-reloader", pflag.ContinueOnError)}
	f.group("Workloads", f.selection.add)
	f.group("When to reload", f.addReload)
	f.group("Annotations of Stakater's Reloader", f.stakater.add)
	f.group("Names of Reloader's annotations", f.stakater.addKeys)
	f.group("Admission webhook", f.webhook.add)
	f.group("Digests", f.addDigest)
	f.group("Process", f.addProcess)
	f.group("Metrics, probes and profiles", f.servers.add)
	f.group("Logs", f.logs.add)
	return f
}

// Groups returns the flags in the order of the help text.
func (f *Flags) Groups() []Group { return f.groups }

// All returns all flags in one set.
func (f *Flags) All() *pflag.FlagSet { return f.all }

func (f *Flags) group(title string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	add(set)
	f.groups = append(f.groups, Group{Title: title, Set: set})
	f.all.AddFlagSet(set)
}

func (f *Flags) addReload(set *pflag.FlagSet) {
	set.DurationVar(&f.settle, "settle", time.Second, "time without changes before a reload, at most --settle-max, so that several changes cause one reload; 0: none")
	set.DurationVar(&f.settleMax, "settle-max", 5*time.Second, "maximum delay of a reload by --settle")
	set.DurationVar(&f.refractory, "refractory", 5*time.Second, "minimum time between two reloads of one workload; 0: none")
	set.StringVar(&f.missingRequired, "missing-required", "hold", "when an object that pods cannot start without is deleted: `hold|reload`; hold: no reload until it exists again; reload: reload at once")
	set.IntVar(&f.workers, "workers", 16, "how many workloads are reconciled at the same time")
}

func (f *Flags) addDigest(set *pflag.FlagSet) {
	set.StringVar(&f.hash, "hash", "content", "value of config-hash: `content|revision`; revision: the digest that SAP's pod-reloader publishes")
	set.StringVar(&f.digestKeySecret, "digest-key-secret", "pod-reloader-digest-key", "`name` of the Secret with the digest keys; the manager creates it when missing")
}

func (f *Flags) addProcess(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "`path` of a kubeconfig (default: $KUBECONFIG, or ~/.kube/config; if there is none, the service account in a cluster)")
	set.StringVar(&f.namespace, "namespace", "", "`namespace` of this installation (default: $POD_NAMESPACE, $RELOADER_NAMESPACE, the service account's, $KUBERNETES_NAMESPACE, or that of the kubeconfig's context)")
	set.StringVar(&f.installation, "installation-name", "", "`name` of this installation's Deployment, and of its lease (default: $RELOADER_DEPLOYMENT_NAME, $POD_NAME without its two suffixes, or pod-reloader)")
	f.election.add(set)
}
