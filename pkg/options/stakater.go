package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// stakaterFlags are those of Stakater's Reloader, with its names and defaults.
type stakaterFlags struct {
	dialect                        annotation.Stakater
	onCreate, onDelete             textSwitch
	rerunFinishedJobs, runCronJobs bool
	withoutResources, labels       []string
	strategy, variableHash         string
	webhookURL                     string
	syncAfterRestart               bool
	read                           bool
}

func (f *stakaterFlags) add(set *pflag.FlagSet) {
	s := &f.dialect
	set.BoolVar(&s.AutoReloadAll, "auto-reload-all", false, "reload workloads without annotations when what they reference changes")
	addSwitch(set, &f.onCreate, "reload-on-create", "reload also when an object is created")
	addSwitch(set, &f.onDelete, "reload-on-delete", "reload also when an object is deleted, even one that pods cannot start without")
	set.BoolVar(&f.rerunFinishedJobs, "rerun-finished-jobs", false, "also re-create Jobs that are complete or have failed")
	set.BoolVar(&f.runCronJobs, "run-cronjobs", true,
		"also run a CronJob at once, where the permission to create Jobs is granted; false: only its next run gets the new configuration")
	set.StringSliceVar(&f.withoutResources, "resources-to-ignore", nil, "kinds of config objects to ignore: `configmaps|secrets`")
	set.StringSliceVar(&f.labels, "resource-label-selector", nil, "only config objects with these `labels`")
	set.StringVar(&f.strategy, "reload-strategy", string(annotation.ConfigHash),
		"what a reload writes on a pod template: `config-hash|annotations|env-vars`; the word default means env-vars, as in Reloader's chart")
	set.StringVar(&f.variableHash, "env-vars-hash", "keyed",
		"what --reload-strategy writes for a Secret: `keyed|sha1`; sha1: as Reloader; anyone who can read the pod template can test guesses of the content")
	set.StringVar(&f.webhookURL, "webhook-url", "", "post what changed to this `URL` instead of reloading")
	set.BoolVar(&s.SecretProviderClasses, "enable-csi-integration", false,
		"reload also when the Secrets Store CSI driver rotates what a SecretProviderClass mounts; needs permissions of its own")
	set.BoolVar(&f.syncAfterRestart, "sync-after-restart", false, "no effect: changes during a downtime are always found")
	set.BoolVar(&f.read, "stakater-annotations", true, "false: Reloader's annotations are not read")
}

// addKeys adds the flags that name annotations.
func (f *stakaterFlags) addKeys(set *pflag.FlagSet) {
	f.dialect.Keys = annotation.NewStakaterKeys()
	for _, key := range f.keys() {
		set.StringVar(key.value, key.flag, *key.value, "`annotation` "+key.usage)
	}
}

// ShareStakater adds the flags of the second dialect to those of a tool, as Share does.
func (f *Flags) ShareStakater(set *pflag.FlagSet) {
	f.Share(set, "auto-reload-all", "reload-on-create", "reload-on-delete", "resources-to-ignore", "resource-label-selector", "stakater-annotations",
		"enable-csi-integration")
	for _, key := range f.stakater.keys() {
		f.Share(set, key.flag)
	}
}

// stakaterKey is an annotation that a flag names.
type stakaterKey struct {
	flag  string
	value *string
	usage string
}

func (f *stakaterFlags) keys() []stakaterKey {
	keys := &f.dialect.Keys
	return []stakaterKey{
		{"auto-annotation", &keys.Auto, "that reloads for all that a workload references"},
		{"configmap-auto-annotation", &keys.ConfigMap.Auto, "that reloads for all ConfigMaps that a workload references"},
		{"secret-auto-annotation", &keys.Secret.Auto, "that reloads for all Secrets that a workload references"},
		{"configmap-annotation", &keys.ConfigMap.Reload, "that lists ConfigMaps"},
		{"secret-annotation", &keys.Secret.Reload, "that lists Secrets"},
		{"auto-search-annotation", &keys.Search, "that reloads for referenced objects with the annotation of --search-match-annotation"},
		{"search-match-annotation", &keys.Match, "of a ConfigMap, Secret or SecretProviderClass that --auto-search-annotation selects"},
		{"ignore-annotation", &keys.Ignore, "of a ConfigMap, Secret or SecretProviderClass that triggers nothing"},
		{"configmap-exclude-annotation", &keys.ConfigMap.Exclude, "that lists ConfigMaps that never trigger"},
		{"secret-exclude-annotation", &keys.Secret.Exclude, "that lists Secrets that never trigger"},
		{"secretproviderclass-annotation", &keys.SecretProviderClass.Reload, "that lists SecretProviderClasses"},
		{"secretproviderclass-auto-annotation", &keys.SecretProviderClass.Auto, "that reloads for all SecretProviderClasses that a workload mounts"},
		{"secretproviderclass-exclude-annotation", &keys.SecretProviderClass.Exclude, "that lists SecretProviderClasses that never trigger"},
		{"pause-deployment-annotation", &keys.PausePeriod, "with the time that a Deployment is paused after a reload"},
		{"pause-deployment-time-annotation", &keys.PausedAt, "with the time at which a Deployment was paused"},
	}
}

// errUnread is about a flag of a dialect that is not read.
var errUnread = errors.New("has no effect with --stakater-annotations=false: remove one of the two")

// complete returns the second dialect. With secrets, Secrets are handled.
func (f *stakaterFlags) complete(p *problems, secrets bool) annotation.Stakater {
	for _, key := range f.keys() {
		if faults := validation.IsQualifiedName(*key.value); len(faults) > 0 {
			p.add(key.flag, fmt.Errorf("%s is no name of an annotation: %s", reference.Quote(*key.value), strings.Join(faults, ", ")))
		}
	}
	if f.dialect.AutoReloadAll && !f.read {
		p.add("auto-reload-all", errUnread)
	}
	if f.dialect.SecretProviderClasses && !f.read {
		p.add("enable-csi-integration", errUnread)
	}
	s := f.dialect
	s.Patterns = &pattern.Cache{}
	s.ReloadOnCreate, s.ReloadOnDelete = f.onCreate.on(), f.onDelete.on()
	s.Selector = p.selector("resource-label-selector", standardSelector(f.labels))
	s.Without = f.without(p, secrets)
	return s
}

// without returns the kinds of config objects that are not handled.
func (f *stakaterFlags) without(p *problems, secrets bool) []reference.Kind {
	var kinds []reference.Kind
	for _, resource := range f.withoutResources {
		switch strings.ToLower(strings.TrimSpace(resource)) {
		case "configmaps":
			kinds = append(kinds, reference.ConfigMap)
		case "secrets":
			kinds = append(kinds, reference.Secret)
		case "":
		default:
			p.add("resources-to-ignore", fmt.Errorf("%s: want configmaps or secrets", reference.Quote(resource)))
		}
	}
	if !secrets && !slices.Contains(kinds, reference.Secret) {
		kinds = append(kinds, reference.Secret)
	}
	return kinds
}

// completeStrategy returns the strategy. "default" is a value of Reloader's chart; it is the default of Reloader, not ours.
func (f *stakaterFlags) completeStrategy(p *problems) annotation.ReloadStrategy {
	if f.strategy == "default" {
		return annotation.EnvVars
	}
	p.oneOf("reload-strategy", f.strategy, string(annotation.ConfigHash), string(annotation.Annotations), string(annotation.EnvVars))
	return annotation.ReloadStrategy(f.strategy)
}

// plainSecrets reports whether the digest of a Secret in a pod template is Reloader's.
func (f *stakaterFlags) plainSecrets(p *problems) bool {
	p.oneOf("env-vars-hash", f.variableHash, "keyed", "sha1")
	return f.variableHash == "sha1"
}
