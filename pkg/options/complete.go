package options

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Complete validates the flags and returns the settings. The error joins everything that is wrong; each part names its
// flag.
func (f *Flags) Complete(env Environment) (Options, error) {
	var p problems
	o := Options{
		Kubeconfig:          f.kubeconfig,
		Namespace:           f.ownNamespace(&p, env),
		Installation:        f.installationName(&p, env),
		DigestKeySecret:     f.digestKeySecret,
		Servers:             f.servers.complete(&p, env),
		Selection:           f.selection.complete(&p, env, &f.stakater),
		Pod:                 Pod{Namespace: env.Getenv(podNamespace), Name: env.Getenv(podName), UID: env.Getenv("POD_UID")},
		Reload:              f.reload(&p, env),
		Alerts:              f.alerts(&p, env),
		PlainSecrets:        f.stakater.plainSecrets(&p),
		MemoryLimit:         memoryLimit(&p, env),
		ShutdownGracePeriod: p.duration("shutdown-grace-period", f.webhook.grace),
	}
	o.Webhook = f.webhook.complete(&p, o.Installation, o.Namespace)
	if err := reference.ValidName(f.digestKeySecret); err != nil {
		p.add("digest-key-secret", err)
	}
	if certificate := o.Webhook.Certificate; certificate.Mode == CertificateSelfManaged && certificate.Secret == f.digestKeySecret {
		p.add("certificate-secret", fmt.Errorf("%s is also the Secret of --digest-key-secret, whose keys would be lost: name two Secrets",
			reference.Quote(certificate.Secret)))
	}
	o.Election = f.election.complete(&p, o.Namespace, o.Installation)
	o.Logging = f.logs.complete()
	return o, errors.Join(p...)
}

func (f *Flags) ownNamespace(p *problems, env Environment) string {
	namespace, variable := env.ownNamespace()
	if f.namespace == "" && namespace != "" && variable != "" {
		p.namespaceOf(variable, namespace)
		return namespace
	}
	var err error
	if namespace = cmp.Or(f.namespace, namespace); namespace == "" {
		namespace, err = env.contextNamespace(f.kubeconfig)
	}
	switch {
	case err != nil:
		p.add("namespace", fmt.Errorf("%w: %w", errNoNamespace, err))
	case namespace == "":
		p.add("namespace", errNoNamespace)
	default:
		p.namespace("namespace", namespace)
	}
	return namespace
}

var errNoNamespace = errors.New("needed outside of a cluster, where neither POD_NAMESPACE, a service account nor a kubeconfig defines it")

// installationName returns the name that distinguishes installations in one namespace.
func (f *Flags) installationName(p *problems, env Environment) string {
	if f.installation != "" {
		p.add("installation-name", reference.ValidName(f.installation))
		return f.installation
	}
	for _, of := range []struct{ variable, name string }{
		{reloaderDeployment, env.Getenv(reloaderDeployment)}, {podName, deploymentOf(env.Getenv(podName))},
	} {
		if of.name == "" {
			continue
		}
		if err := reference.ValidName(of.name); err != nil {
			p.variable(of.variable, err)
		}
		return of.name
	}
	return "pod-reloader"
}

// podSuffix is the length of the random part at the end of a pod's name.
const podSuffix = 5

// deploymentOf returns the name of the Deployment of a pod, whose name is DEPLOYMENT-HASH-SUFFIX; empty if it is not.
func deploymentOf(pod string) string {
	parts := strings.Split(pod, "-")
	if len(parts) < 3 || len(parts[len(parts)-1]) != podSuffix {
		return ""
	}
	return strings.Join(parts[:len(parts)-2], "-")
}

func (f *Flags) reload(p *problems, env Environment) Reload {
	r := Reload{
		Settle:           p.duration("settle", f.settle),
		SettleMax:        p.duration("settle-max", f.settleMax),
		Refractory:       p.duration("refractory", f.refractory),
		Workers:          f.workers,
		Strategy:         f.stakater.completeStrategy(p),
		CountByNamespace: countByNamespace(env),
	}
	if f.settle > f.settleMax {
		p.add("settle", fmt.Errorf("%s is longer than --settle-max %s", f.settle, f.settleMax))
	}
	if f.workers < 1 {
		p.add("workers", fmt.Errorf("%d: at least 1", f.workers))
	}
	p.oneOf("missing-required", f.missingRequired, "hold", "reload")
	p.oneOf("hash", f.hash, "content", "revision")
	r.ReloadMissingRequired = f.missingRequired == "reload"
	r.Revision = f.hash == "revision"
	r.NotifyOnly = f.stakater.webhookURL != ""
	r.RerunFinishedJobs = f.stakater.rerunFinishedJobs
	r.WithoutRuns = !f.stakater.runCronJobs
	return r
}

// problems gathers what is wrong.
type problems []error

func (p *problems) add(flag string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("--%s: %w", flag, err))
	}
}

// variable reports what is wrong with an environment variable, once where several settings come from it.
func (p *problems) variable(name string, err error) {
	err = fmt.Errorf("environment variable %s: %w", name, err)
	if !slices.ContainsFunc(*p, func(other error) bool { return other.Error() == err.Error() }) {
		*p = append(*p, err)
	}
}

func (p *problems) oneOf(flag, value string, allowed ...string) bool {
	for _, a := range allowed {
		if value == a {
			return true
		}
	}
	p.add(flag, fmt.Errorf("%q: want %s", value, strings.Join(allowed, " or ")))
	return false
}

func (p *problems) duration(flag string, d time.Duration) time.Duration {
	if d < 0 {
		p.add(flag, fmt.Errorf("%s: must not be negative", d))
	}
	return d
}

func (p *problems) namespace(flag, name string) { p.add(flag, CheckNamespace(name)) }

// namespaces returns the namespaces in a list, each once.
func (p *problems) namespaces(flag string, items []string) []string {
	var found []string
	for _, name := range names(items) {
		if !slices.Contains(found, name) {
			p.namespace(flag, name)
			found = append(found, name)
		}
	}
	return found
}

// names returns the names in a list, without spaces around them and without the empty ones.
func names(items []string) []string {
	var found []string
	for _, name := range items {
		if name = strings.TrimSpace(name); name != "" {
			found = append(found, name)
		}
	}
	return found
}

func (p *problems) namespaceOf(variable, name string) {
	if err := CheckNamespace(name); err != nil {
		p.variable(variable, err)
	}
}

// CheckNamespace returns an error if no namespace can have a name.
func CheckNamespace(name string) error {
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return fmt.Errorf("%s is not a valid namespace name: %s", reference.Quote(name), strings.Join(faults, ", "))
	}
	return nil
}

func (p *problems) selector(flag, text string) labels.Selector {
	if text == "" {
		return nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		p.add(flag, fmt.Errorf("%q is not a label selector: %w", text, err))
		return nil
	}
	return selector
}

func (p *problems) optionalAddress(flag, address string) string {
	if address == "" || address == "0" {
		return "0"
	}
	return p.address(flag, address)
}

func (p *problems) address(flag, address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		p.add(flag, fmt.Errorf("%q: want host:port or :port", address))
		return address
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		p.add(flag, fmt.Errorf("%q: %q is not a port number", address, port))
	}
	return address
}
