package options

import (
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	crzap "sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
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

	kubeconfig, namespace, digestKeySecret     string
	installation                               string
	metricsAddress, probeAddress, pprofAddress string
	webhookAddress, webhookDirectory, minTLS   string
	webhookClientCA                            string
	webhookClientNames                         []string
	certificate                                certificateFlags
	election                                   electionFlags
	annotationPrefix                           string
	objectSelector                             string
	missingRequired, hash, configuration       string
	webhookURL                                 string
	openshift, argoRollouts                    textSwitch
	reloadOnCreate, reloadOnDelete             textSwitch
	logFormat, logLevel                        string
	kinds, namespaces, namespaceSelector       []string
	withoutNamespaces, withoutKinds            []string
	stakaterAnnotations                        bool
	metricsSecure, pprof, webhook, http2       bool
	secrets                                    bool
	syncAfterRestart                           bool
	rerunFinishedJobs, runCronJobs             bool
	settle, settleMax, refractory, grace       time.Duration
	workers                                    int
	stakater                                   annotation.Stakater
	withoutResources, resourceLabels           []string
	strategy, variableHash                     string
	zap                                        crzap.Options
}

// NewFlags returns the flags with their defaults.
func NewFlags() *Flags {
	f := &Flags{all: pflag.NewFlagSet("pod-reloader", pflag.ContinueOnError)}
	f.group("Workloads", f.addSelection)
	f.group("When to reload", f.addReload)
	f.group("Annotations of Stakater's Reloader", f.addStakater)
	f.group("Names of Reloader's annotations", f.addStakaterKeys)
	f.group("Admission webhook", f.addWebhook)
	f.group("Digests", f.addDigest)
	f.group("Process", f.addProcess)
	f.group("Metrics, probes and profiles", f.addServers)
	f.group("Logs", f.addLogs)
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

func (f *Flags) addSelection(set *pflag.FlagSet) {
	set.StringSliceVar(&f.namespaces, "namespaces", nil,
		"only these `namespaces`, comma-separated or repeated; needs permissions in these only (default: all but kube-system)")
	set.StringSliceVar(&f.withoutNamespaces, "namespaces-to-ignore", nil, "`namespaces` to exclude, comma-separated or repeated")
	set.StringSliceVar(&f.namespaceSelector, "namespace-selector", nil,
		"only namespaces with these labels, as `selector` (e.g. pod-reloader=enabled); also key:value and key=*")
	set.StringVar(&f.objectSelector, "object-selector", "", "only workloads with these labels, as `selector`")
	set.StringSliceVar(&f.kinds, "workload-kinds", nil,
		"workload `kinds` in addition to the built-in ones, comma-separated or repeated, as group/version/Kind=path.of.pod.template (e.g. apps.kruise.io/v1alpha1/CloneSet=spec.template)")
	set.StringSliceVar(&f.withoutKinds, "ignored-workload-types", nil, "kinds to exclude: `jobs,cronjobs`; no permissions on them are needed")
	addSwitch(set, &f.argoRollouts, "is-Argo-Rollouts", "also Argo Rollouts, as --workload-kinds=argoproj.io/v1alpha1/Rollout=spec.template")
	f.openshift.detect = true
	addSwitch(set, &f.openshift, "is-openshift", "also DeploymentConfigs of OpenShift, as --workload-kinds="+deploymentConfigs+
		": `true|false|auto`; auto means true: a kind that the cluster does not serve has no effect")
	set.BoolVar(&f.secrets, "secrets", true, "false: Secrets are not handled, and no permissions on them are needed but on the digest key")
	set.StringVar(&f.configuration, "config", "",
		"structured configuration, as `configmap:NAMESPACE/NAME` or the path of a file; the manager applies a valid change without a restart")
	set.StringVar(&f.annotationPrefix, "annotation-prefix", annotation.DefaultPrefix, "`prefix` of the annotations and labels")
}

func (f *Flags) addReload(set *pflag.FlagSet) {
	set.DurationVar(&f.settle, "settle", time.Second, "time without changes before a reload, at most --settle-max, so that several changes cause one reload; 0: none")
	set.DurationVar(&f.settleMax, "settle-max", 5*time.Second, "maximum delay of a reload by --settle")
	set.DurationVar(&f.refractory, "refractory", 5*time.Second, "minimum time between two reloads of one workload; 0: none")
	set.StringVar(&f.missingRequired, "missing-required", "hold", "when an object that pods cannot start without is deleted: `hold|reload`; hold: no reload until it exists again; reload: reload at once")
	set.IntVar(&f.workers, "workers", 16, "how many workloads are reconciled at the same time")
}

func (f *Flags) addWebhook(set *pflag.FlagSet) {
	set.BoolVar(&f.webhook, "webhook", true, "serve the admission webhook; false: direct mode, the loop writes pod templates itself")
	set.StringVar(&f.webhookAddress, "webhook-bind-address", ":9443", "`address` of the webhook")
	set.StringVar(&f.webhookDirectory, "webhook-tls-directory", "", "`directory` with tls.crt and tls.key, read again when they change (default: k8s-webhook-server/serving-certs in the directory for temporary files)")
	set.StringVar(&f.webhookClientCA, "webhook-client-ca", "", "`path` of the CA certificates for callers of the webhook, read again when it changes: calls without a client certificate signed by one are refused (default: no certificate is needed)")
	set.StringSliceVar(&f.webhookClientNames, "webhook-client-names", nil, "only client certificates with these common `names`, comma-separated or repeated; needs --webhook-client-ca")
	f.certificate.add(set)
	set.StringVar(&f.minTLS, "tls-min-version", "1.3", "oldest TLS version of the webhook and of secure metrics: `1.2|1.3`")
	set.BoolVar(&f.http2, "enable-http2", true, "HTTP/2 for the webhook and secure metrics; false: HTTP/1.1 only")
	set.DurationVar(&f.grace, "shutdown-grace-period", 10*time.Second, "how long admission is served after SIGTERM, while the endpoint drains")
}

func (f *Flags) addDigest(set *pflag.FlagSet) {
	set.StringVar(&f.hash, "hash", "content", "value of config-hash: `content|revision`; revision: the digest that SAP's pod-reloader publishes")
	set.StringVar(&f.digestKeySecret, "digest-key-secret", "pod-reloader-digest-key", "`name` of the Secret with the digest keys, created when missing")
}

func (f *Flags) addProcess(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "`path` of a kubeconfig (default: $KUBECONFIG, or ~/.kube/config; if there is none, the service account in a cluster)")
	set.StringVar(&f.namespace, "namespace", "", "`namespace` of this installation (default: $POD_NAMESPACE, the service account's, or that of the kubeconfig's context)")
	set.StringVar(&f.installation, "installation-name", "", "`name` of this installation's Deployment, and of its lease (default: $POD_NAME without its two suffixes, or pod-reloader)")
	f.election.add(set)
}

func (f *Flags) addServers(set *pflag.FlagSet) {
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8080",
		"`address` of /metrics, /healthz, /live and /readyz; 0: off (default in a pod of Reloader's chart: :9090, which it probes)")
	set.StringVar(&f.metricsAddress, "metrics-addr", f.metricsAddress, "Reloader's name for --metrics-bind-address: the `address` of the metrics")
	set.BoolVar(&f.metricsSecure, "metrics-secure", false, "serve metrics by TLS, only to users who may get the non-resource URL /metrics")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0: off")
	set.StringVar(&f.probeAddress, "health-addr", f.probeAddress, "Reloader's name for --health-probe-bind-address: the `address` of the probes")
	set.BoolVar(&f.pprof, "enable-pprof", false, "serve profiles at --pprof-addr")
	set.StringVar(&f.pprofAddress, "pprof-addr", "127.0.0.1:6060", "`address` of /debug/pprof")
}

func (f *Flags) addLogs(set *pflag.FlagSet) {
	set.StringVar(&f.logFormat, "log-format", "json", "`json|text`")
	set.StringVar(&f.logLevel, "log-level", "info", "`level`: trace, debug, info, warning, error, fatal, panic, or a number: a higher number logs more")
	legacy := flag.NewFlagSet("zap", flag.ContinueOnError)
	f.zap.BindFlags(legacy)
	legacy.VisitAll(func(fl *flag.Flag) { fl.Usage = zapUsage[fl.Name] })
	set.AddGoFlagSet(legacy)
}

// zapUsage says in our words what the logging flags of SAP's pod-reloader do.
var zapUsage = map[string]string{
	"zap-devel":            "text logs at level debug, with stack traces from warnings on",
	"zap-encoder":          "`json|console`; --log-format takes precedence",
	"zap-log-level":        "`debug|info|error|panic`, or a number; --log-level takes precedence",
	"zap-stacktrace-level": "stack traces from this level on: `info|error|panic`",
	"zap-time-encoding":    "`epoch|millis|nanos|iso8601|rfc3339|rfc3339nano` (default rfc3339)",
}

// defaultDirectory is where SAP's pod-reloader looks for the certificate, too.
func defaultDirectory() string {
	return filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
}
