package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// commandLine has the values of flags by name, each flag as often as it was given. What the oracle judges by is read from this text, as
// the documents of the flags say, and by nothing of the program: a flag that the program reads in another way is found.
type commandLine map[string][]string

// readCommandLine reads flags as histories have them.
func readCommandLine(flags []string) (commandLine, error) {
	line := commandLine{}
	for _, flag := range flags {
		name, value, ok := strings.Cut(flag, "=")
		if !strings.HasPrefix(name, "--") {
			return nil, fmt.Errorf("setup.flags: %q: want --name=value", flag)
		}
		if !ok {
			value = "true"
		}
		line[name] = append(line[name], value)
	}
	return line, nil
}

// last returns the value of a flag that has one: the last one, or its default.
func (l commandLine) last(name, otherwise string) string {
	values := l[name]
	if len(values) == 0 {
		return otherwise
	}
	return values[len(values)-1]
}

// list returns the items of a flag that is comma-separated or repeated.
func (l commandLine) list(name string) []string {
	return world.Items(strings.Join(l[name], ","))
}

func (l commandLine) duration(name string, otherwise time.Duration) (time.Duration, error) {
	text := l.last(name, otherwise.String())
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("setup.flags: %s: %w", name, err)
	}
	return d, nil
}

func (l commandLine) is(name string, otherwise bool) (bool, error) {
	is, err := strconv.ParseBool(l.last(name, strconv.FormatBool(otherwise)))
	if err != nil {
		return false, fmt.Errorf("setup.flags: %s: %w", name, err)
	}
	return is, nil
}

// switchedOn reads a flag that is a text in Stakater's Reloader: a value that means nothing is off, and so is an empty one.
func (l commandLine) switchedOn(name string) bool {
	on, err := strconv.ParseBool(strings.ToLower(l.last(name, "false")))
	return on && err == nil
}

// ignoredKinds returns the resources that are not looked after.
func (l commandLine) ignoredKinds() []string {
	kinds := l.list(ignoredFlag)
	for i := range kinds {
		kinds[i] = strings.ToLower(kinds[i])
	}
	return kinds
}

// hidden returns the config objects that are not looked at.
func (l commandLine) hidden() (oracle.Hidden, error) {
	labelled, labelsErr := l.selector(labelledFlag)
	secrets, secretsErr := l.is(secretsFlag, true)
	dialect, dialectErr := l.is(dialectFlag, true)
	hidden := oracle.Hidden{Others: l.list(untrackedFlag)}
	if !dialect {
		hidden.Unread, hidden.Others = true, []string{world.ConfigMaps.Plural, world.Secrets.Plural}
	}
	if !secrets {
		hidden.Kinds = []string{world.Secrets.Plural}
	}
	if len(l[labelledFlag]) > 0 {
		hidden.Labels = func(of map[string]string) bool { return labelled.Matches(labels.Set(of)) }
	}
	return hidden, cmp.Or(labelsErr, secretsErr, dialectErr)
}

func (l commandLine) selector(name string) (labels.Selector, error) {
	s, err := labels.Parse(strings.Join(l[name], ","))
	if err != nil {
		return nil, fmt.Errorf("setup.flags: %s: %w", name, err)
	}
	return s, nil
}

// gates are the times before a restart.
type gates struct{ settle, settleMax, refractory time.Duration }

// gatesOf returns the gates of a process that is started with these flags.
func gatesOf(flags []string) (gates, error) {
	line, err := readCommandLine(flags)
	if err != nil {
		return gates{}, err
	}
	settle, settleErr := line.duration("--settle", time.Second)
	settleMax, maxErr := line.duration("--settle-max", 5*time.Second)
	refractory, refractoryErr := line.duration("--refractory", 5*time.Second)
	return gates{settle, settleMax, refractory}, cmp.Or(settleErr, maxErr, refractoryErr)
}

// scopeOf returns what flags select.
func scopeOf(flags []string) (oracle.Scope, error) {
	line, err := readCommandLine(flags)
	if err != nil {
		return oracle.Scope{}, err
	}
	of, namespaceErr := line.selector("--namespace-selector")
	object, objectErr := line.selector("--object-selector")
	rollouts := slices.Contains(line.list("--workload-kinds"), "argoproj.io/v1alpha1/Rollout=spec.template")
	hidden, hiddenErr := line.hidden()
	only, ignored := line.list("--namespaces"), line.list("--namespaces-to-ignore")
	named := func(namespace string) bool {
		if slices.Contains(ignored, namespace) {
			return false
		}
		return slices.Contains(only, namespace) || len(only) == 0 && namespace != "kube-system"
	}
	return oracle.Scope{
		InScope: func(namespace string, namespaceLabels, objectLabels map[string]string) bool {
			return named(namespace) && of.Matches(labels.Set(namespaceLabels)) && object.Matches(labels.Set(objectLabels))
		},
		CustomKind: rollouts || line.switchedOn(argoFlag),
		Ignored:    line.ignoredKinds(),
		Hidden:     hidden,
		Clear:      true,
	}, cmp.Or(namespaceErr, objectErr, hiddenErr)
}

// rulesOf returns what the oracle judges an installation by.
func rulesOf(flags []string) (oracle.Options, error) {
	line, err := readCommandLine(flags)
	if err != nil {
		return oracle.Options{}, err
	}
	g, gatesErr := gatesOf(flags)
	scope, scopeErr := scopeOf(flags)
	webhook, webhookErr := line.is("--webhook", true)
	rerun, rerunErr := line.is(rerunFlag, false)
	auto, autoErr := line.is(autoFlag, false)
	lease, leaseErr := line.duration("--leader-election-lease-duration", 15*time.Second)
	retry, retryErr := line.duration("--leader-election-retry-period", time.Second)
	return oracle.Options{
		Settle: g.settle, SettleMax: g.settleMax, Refractory: g.refractory, Lease: lease, Retry: retry,
		Prefix:  prefixOf(flags),
		InScope: scope.InScope, CustomKind: scope.CustomKind, Ignored: scope.Ignored, Hidden: scope.Hidden, Configuration: configurationOf(line),
		Direct: !webhook, RerunFinished: rerun, AutoReloadAll: auto, Strategy: strategyOf(line), ReloadOnCreate: line.switchedOn(createFlag),
		ReloadOnDelete:        line.switchedOn(deleteFlag),
		ReloadMissingRequired: line.last("--missing-required", "hold") == "reload", Revision: line.last("--hash", "content") == "revision",
	}, cmp.Or(gatesErr, scopeErr, webhookErr, rerunErr, autoErr, leaseErr, retryErr)
}

// prefixOf returns the prefix of annotations and labels, with its slash, which may be left out.
func prefixOf(flags []string) string {
	for _, flag := range slices.Backward(flags) {
		if prefix, is := strings.CutPrefix(flag, prefixFlag); is {
			return strings.TrimSuffix(prefix, "/") + "/"
		}
	}
	return act.Prefix
}

// strategyOf returns what a restart writes besides the hash; empty for nothing.
func strategyOf(line commandLine) string {
	switch strategy := line.last("--reload-strategy", "config-hash"); strategy {
	case "config-hash":
		return ""
	case "default":
		return "env-vars"
	default:
		return strategy
	}
}

// configurationOf returns the ConfigMap with the structured configuration; none if it is elsewhere or nowhere.
func configurationOf(line commandLine) world.Key {
	location, ok := strings.CutPrefix(line.last("--config", ""), "configmap:")
	if !ok {
		return world.Key{}
	}
	namespace, name, _ := strings.Cut(location, "/")
	return world.Key{Resource: world.ConfigMaps, Namespace: namespace, Name: name}
}
