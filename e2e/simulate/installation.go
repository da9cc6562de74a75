package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// customKind makes the program look after Rollouts.
	customKind = "--workload-kinds=argoproj.io/v1alpha1/Rollout=spec.template"
	// argoFlag names the custom kind, too; ignoredFlag takes Jobs or CronJobs away.
	argoFlag, ignoredFlag = "--is-Argo-Rollouts", "--ignored-workload-types"
	// prefixFlag changes the names of annotations and labels.
	prefixFlag = "--annotation-prefix="
	// namespaceFlag selects namespaces by their labels, which the program then watches.
	namespaceFlag = "--namespace-selector="
	// autoFlag tracks what workloads reference that do not say what they track.
	autoFlag = "--auto-reload-all"
	// createFlag has creations restart workloads with annotations of Reloader, too.
	createFlag = "--reload-on-create"
	// deleteFlag has deletions restart them, too, and those of objects that pods require.
	deleteFlag = "--reload-on-delete"
	// secretsFlag is off where no Secrets are looked at; untrackedFlag takes a kind of config objects away from the annotations of
	// Reloader, labelledFlag those without some labels.
	secretsFlag, untrackedFlag, labelledFlag = "--secrets", "--resources-to-ignore", "--resource-label-selector"
	// dialectFlag is off where no annotations of Reloader are looked at.
	dialectFlag = "--stakater-annotations"
	// directFlag takes the webhook away.
	directFlag = "--webhook=false"
	// rerunFlag has finished Jobs created again, too.
	rerunFlag = "--rerun-finished-jobs"
	// strategyFlag chooses what a restart writes on a pod template besides the hash.
	strategyFlag = "--reload-strategy="
	// configMapFlag names the ConfigMap that the acts on the configuration write.
	configMapFlag = "--config=configmap:" + act.System + "/" + act.Configuration
)

// isScope reports whether a flag says which workloads and which kinds of config objects are looked after.
func isScope(flag string) bool {
	return slices.Contains([]string{
		"--namespaces", "--namespaces-to-ignore", "--namespace-selector", "--object-selector", "--workload-kinds", argoFlag, ignoredFlag,
		secretsFlag, untrackedFlag, dialectFlag,
	}, flagName(flag))
}

// selection returns the flags that all replicas must have in common.
func selection(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return !isScope(flag) && !isRule(flag) && flag != configMapFlag })
}

// isRule reports whether a flag decides what restarts a workload: the oracle judges all replicas by the same rules.
func isRule(flag string) bool {
	return flag == directFlag || strings.HasPrefix(flag, strategyFlag) || strings.HasPrefix(flag, prefixFlag) || slices.Contains([]string{
		"--missing-required", "--hash", rerunFlag, autoFlag, createFlag, deleteFlag, labelledFlag,
	}, flagName(flag))
}

func flagName(flag string) string {
	name, _, _ := strings.Cut(flag, "=")
	return name
}

// render puts the flags into the configuration of the webhook, as the chart does. The rule for the custom kind is there if
// anything may name it.
func render(config *admissionregistrationv1.MutatingWebhook, flags []string) error {
	custom := false
	if line, err := readCommandLine(flags); err != nil {
		return err
	} else if auto, err := line.is(autoFlag, false); err != nil || auto {
		config.MatchConditions = nil // as the component does that sets the flag
	}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--namespaces":
			names := &config.NamespaceSelector.MatchExpressions[0]
			names.Operator, names.Values = metav1.LabelSelectorOpIn, strings.Split(value, ",")
		case "--namespace-selector":
			parsed, err := metav1.ParseToLabelSelector(value)
			if err != nil {
				return fmt.Errorf("setup.flags: %w", err)
			}
			config.NamespaceSelector.MatchExpressions = append(config.NamespaceSelector.MatchExpressions, parsed.MatchExpressions...)
			config.NamespaceSelector.MatchLabels = parsed.MatchLabels
		case "--workload-kinds", "--config", argoFlag:
			custom = true
		}
	}
	for i := range config.MatchConditions {
		condition := &config.MatchConditions[i]
		condition.Expression = strings.ReplaceAll(condition.Expression, act.Prefix, prefixOf(flags))
	}
	if custom {
		rule := *config.Rules[0].DeepCopy()
		rule.APIGroups, rule.APIVersions = []string{world.Rollouts.Group}, []string{world.Rollouts.Version}
		rule.Resources = []string{world.Rollouts.Plural}
		config.Rules = append(config.Rules, rule)
	}
	return nil
}

// installationFaults are changes of the whole installation.
func installationFaults() []faultKind {
	return []faultKind{{
		name: "reconfigure", kind: "upgrade", weight: 2,
		words: "the installation is upgraded: one replica after the other starts with another scope (%[3]s)",
		draw: func(r *rand.Rand) history.Step {
			return history.Step{With: map[string]string{"for": "30s", "flags": pick(r, scopeSets()...)}}
		},
		begin: reconfigure,
	}, {
		name: changeFlag, kind: "upgrade",
		words: "the installation is upgraded: one replica after the other starts with another value of a flag (%[3]s)",
		draw: func(r *rand.Rand) history.Step {
			return history.Step{With: map[string]string{"for": "30s", "flags": pick(r, flagValues()...)}}
		},
		begin: beginChange,
	}}
}

// scopeSets are scopes that an installation may change to. Each flag set replaces the earlier scope.
func scopeSets() []string {
	return []string{
		"", "", customKind, "--namespaces=shop", "--namespaces=shop,bank", "--namespace-selector=team=shop",
		"--namespace-selector=team", "--object-selector=note!=b", "--object-selector=version!=3",
		argoFlag, argoFlag + "=no", ignoredFlag + "=cronjobs",
		secretsFlag + "=false", untrackedFlag + "=configmaps", untrackedFlag + "=configmaps,secrets", "--namespaces-to-ignore=bank",
	}
}

// betweenReplicas is the time from the end of one replica to that of the next.
const betweenReplicas = 4 * time.Second

// reconfigure renders the webhook's configuration anew and restarts all replicas, one after the other. Until the last of
// the old ones has ended it is not clear which scope is in force.
func reconfigure(s *simulation, step history.Step) func() {
	if s.history.Setup.Second != nil {
		return nil // the flags of both divide the workloads
	}
	s.flags = withScope(s.flags, splitFlags(step.With["flags"]))
	s.disagree()
	s.roll(func(flags []string) []string { return withScope(flags, splitFlags(step.With["flags"])) })
	return s.agree
}

// disagree renders the webhook's configuration anew, and says to the oracle that it is not clear which workloads are looked after.
func (s *simulation) disagree() {
	scope := s.scope()
	scope.Clear = false
	s.oracle.ask(func(o *oracle.Oracle) { o.Rescope(time.Now(), scope) })
	if err := s.setWebhooks(); err != nil {
		s.broken = err
	}
}

// roll restarts all replicas with other flags, one after the other.
func (s *simulation) roll(change func(flags []string) []string) {
	for i, at := range s.slots {
		at.flags = change(at.flags)
		s.after(time.Duration(i)*betweenReplicas, func() {
			if at.wanted && at.current != nil {
				s.terminate(at.current)
			}
		})
	}
}

// withScope replaces the flags about scope.
func withScope(flags, scope []string) []string {
	return append(slices.DeleteFunc(slices.Clone(flags), isScope), scope...)
}

// scope is that of the installation.
func (s *simulation) scope() oracle.Scope {
	scope, err := scopeOf(s.flags)
	if err != nil {
		s.broken = err
	}
	return scope
}

// agree waits until every process that runs has the flags of the installation, and says so to the oracle.
func (s *simulation) agree() {
	for _, at := range s.slots {
		if r := at.current; r != nil && !slices.Equal(selection(r.flags), selection(at.flags)) {
			s.terminate(r)
			s.after(time.Second, s.agree)
			return
		}
	}
	policy, scope := s.policy(), s.scope()
	s.oracle.ask(func(o *oracle.Oracle) { o.Repolicy(time.Now(), policy); o.Rescope(time.Now(), scope) })
}

func (s *simulation) setWebhooks() error {
	all, err := s.webhooks()
	if err != nil {
		return err
	}
	return s.api.SetWebhooks(all)
}
