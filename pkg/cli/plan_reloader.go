package cli

import (
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// reloaderSettings are the flags and variables that Reloader runs with, read as this program reads its own.
type reloaderSettings struct {
	manager     *options.Flags
	environment options.Environment
	// unsupported are its flags that this program does not accept, with the reason, and a Deployment that seems to be another program's.
	unsupported []plan.Setting
}

// take reads the arguments and the environment of Reloader's Deployment.
func (rs *reloaderSettings) take(deployment *appsv1.Deployment) {
	container, named, ok := containerOf(deployment)
	if !ok {
		return
	}
	if !named {
		rs.unsupported = append(rs.unsupported, plan.Setting{
			Name:    "--reloader",
			Message: "no container of this Deployment has Reloader's name or image: check the name; the flags of its first container are compared",
		})
	}
	variable := variablesOf(container, deployment, func(string) string { return "" })
	rs.environment.Getenv = func(name string) string {
		if name == "RELOADER_DEPLOYMENT_NAME" { // what is planned is an installation of its own, not this program in the place of Reloader
			return ""
		}
		return variable(name)
	}
	rs.parse(argumentsOf(container, variable))
}

// parse reads arguments of Reloader. What this program does not accept is a difference, and no wrong usage.
func (rs *reloaderSettings) parse(args []string) {
	rs.refuse(rs.manager.Parse(args))
}

// refuse keeps what an error says of each flag.
func (rs *reloaderSettings) refuse(err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		name, message, ok := strings.Cut(line, ": ")
		if !ok {
			name, message = "arguments", line
		}
		if s := (plan.Setting{Name: name, Message: message}); !slices.Contains(rs.unsupported, s) {
			rs.unsupported = append(rs.unsupported, s)
		}
	}
}

// complete returns what the flags select, and the settings that have another effect here.
func (rs *reloaderSettings) complete() (options.Selection, options.Reload, []plan.Setting) {
	selection, reload, err := rs.manager.CompleteShared(rs.environment)
	rs.refuse(err)
	rs.refuse(errors.Join(rs.manager.Warnings(rs.environment)...))
	settings := slices.Clone(rs.unsupported)
	add := func(name, message string) { settings = append(settings, plan.Setting{Name: name, Message: message}) }
	strategy := rs.manager.All().Lookup("reload-strategy")
	hash := rs.manager.All().Lookup("env-vars-hash").Value.String()
	switch {
	case !strategy.Changed:
		add("--reload-strategy", "Reloader writes variables STAKATER_… by default, pod-reloader one annotation; set env-vars if something reads the variables")
	case rs.variables() && hash != "sha1":
		add("--env-vars-hash", "the variable of a Secret has a keyed digest; set sha1 for Reloader's own, with which guesses of the content can be tested")
	}
	if reload.NotifyOnly {
		add("--webhook-url", "the request has other content: it names a workload and what changed, and is posted once for each workload")
	}
	if selection.Stakater.AutoReloadAll {
		add("--auto-reload-all", "the webhook must be asked about every workload: use the chart value or the component")
	}
	if selection.Stakater.SecretProviderClasses {
		add("--enable-csi-integration", "it needs permissions of its own: use the chart value or the component")
	}
	if slices.ContainsFunc(selection.Kinds.All(), workload.Kind.Restartable) {
		add("--is-Argo-Rollouts", "it needs permissions of its own: use the chart value reloader.isArgoRollouts or the component argo-rollouts")
	}
	if selection.Scope.SelectsNamespaces() {
		add("--namespace-selector", "the webhook must have the same selector: use the chart value namespaceSelector or the component namespace-selector")
	}
	settings = append(settings, rs.readOtherwise(selection)...)
	return selection, reload, append([]plan.Setting{}, settings...)
}

// readOtherwise returns the flags whose values mean something else in Reloader.
func (rs *reloaderSettings) readOtherwise(selection options.Selection) []plan.Setting {
	var settings []plan.Setting
	for _, name := range rs.onHereOnly() {
		settings = append(settings, plan.Setting{
			Name: "--" + name, Message: "Reloader 1.4 takes only the word true for on, so that it is off there and on here; write false to keep it off",
		})
	}
	if rs.ignoresNoWorkloads() {
		settings = append(settings, plan.Setting{
			Name:    "--ignored-workload-types",
			Message: "with an item other than jobs and cronjobs it ignores nothing in Reloader; remove it to have Jobs and CronJobs reloaded",
		})
	}
	if selection.Stakater.SecretProviderClasses && selection.Stakater.Selector != nil {
		settings = append(settings, plan.Setting{
			Name:    "--resource-label-selector",
			Message: "Reloader applies it to the SecretProviderClassPodStatus objects of the driver, pod-reloader only to ConfigMaps and Secrets",
		})
	}
	if !rs.isTrue("reload-on-create") && !rs.isTrue("reload-on-delete") {
		settings = append(settings, recreated())
	}
	return settings
}

// recreated is the difference in what an object does that is deleted and created again: it is one of two events, of which Reloader looks at none.
func recreated() plan.Setting {
	return plan.Setting{
		Name: "--reload-on-create",
		Message: "without it, Reloader restarts nothing when an object is deleted and created again with another content; " +
			"pod-reloader restarts its workloads",
	}
}

// ignoresNoWorkloads reports whether an item of --ignored-workload-types keeps Reloader from reading the others.
func (rs *reloaderSettings) ignoresNoWorkloads() bool {
	return slices.ContainsFunc(rs.items("ignored-workload-types"), func(item string) bool { return item != "jobs" && item != "cronjobs" })
}

// ignoresResources reports whether --resources-to-ignore names a kind.
func (rs *reloaderSettings) ignoresResources() bool {
	return slices.ContainsFunc(rs.items("resources-to-ignore"), func(item string) bool { return item != "" })
}

// items returns those of a flag that is a list.
func (rs *reloaderSettings) items(name string) []string {
	items, _ := rs.manager.All().GetStringSlice(name) // it is one
	return items
}

// onHereOnly returns the flags that are on here, and off in Reloader since it takes them for texts: True and 1 are not true there.
func (rs *reloaderSettings) onHereOnly() []string {
	return slices.DeleteFunc([]string{"is-Argo-Rollouts", "reload-on-create", "reload-on-delete"}, func(name string) bool {
		return !rs.manager.On(name) || rs.isTrue(name)
	})
}

// isTrue reports whether a flag that Reloader takes for a text is on there.
func (rs *reloaderSettings) isTrue(name string) bool {
	return rs.manager.All().Lookup(name).Value.String() == "true"
}

// variables reports whether Reloader sets environment variables, as it does by default.
func (rs *reloaderSettings) variables() bool {
	strategy := rs.manager.All().Lookup("reload-strategy")
	return !strategy.Changed || slices.Contains([]string{"default", "env-vars"}, strategy.Value.String())
}

// reloader returns what decides in Reloader.
func (rs *reloaderSettings) reloader(s options.Selection, reload options.Reload) plan.Reloader {
	return plan.Reloader{
		Dialect: rs.dialect(s), ReloadOnCreate: rs.isTrue("reload-on-create"), ReloadOnDelete: rs.isTrue("reload-on-delete"),
		OneKind:    rs.ignoresResources() && !rs.isTrue("sync-after-restart"),
		Namespaces: rs.manager.NamedNamespaces(rs.environment), IgnoredNamespaces: s.Scope.Ignored, NamespaceSelector: s.Scope.NamespaceSelector,
		Kinds: rs.kinds(s.Kinds), Variables: rs.variables(), NotifyOnly: reload.NotifyOnly,
	}
}

// dialect returns the annotations and flags of Reloader, which handles Secrets with --secrets=false as well.
func (rs *reloaderSettings) dialect(s options.Selection) annotation.Stakater {
	theirs := s.Stakater
	if s.WithoutSecrets && !rs.ignoresSecrets() {
		theirs.Without = slices.DeleteFunc(slices.Clone(theirs.Without), func(kind reference.Kind) bool { return kind == reference.Secret })
	}
	return theirs
}

// ignoresSecrets reports whether --resources-to-ignore names Secrets.
func (rs *reloaderSettings) ignoresSecrets() bool {
	return slices.ContainsFunc(rs.items("resources-to-ignore"), func(item string) bool {
		return strings.EqualFold(strings.TrimSpace(item), "secrets")
	})
}

// kinds returns those of ours that Reloader handles, and DeploymentConfigs, which it handles by default.
func (rs *reloaderSettings) kinds(ours workload.Kinds) workload.Kinds {
	builtin := workload.NewKinds(workload.Builtin()...)
	theirs := slices.DeleteFunc(ours.All(), func(k workload.Kind) bool {
		_, known := builtin.Get(k.GroupVersionKind)
		return !known && (!k.Restartable() || !rs.isTrue("is-Argo-Rollouts"))
	})
	if rs.ignoresNoWorkloads() {
		theirs = append(theirs, workload.Builtin()...)
	}
	if !rs.manager.All().Changed("is-openshift") || rs.manager.On("is-openshift") {
		theirs = append(theirs, workload.DeploymentConfig())
	}
	return workload.NewKinds(theirs...)
}
