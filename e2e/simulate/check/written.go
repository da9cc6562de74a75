package check

import (
	"fmt"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func step(do, on string, with ...string) history.Step {
	s := history.Step{Do: do, On: on}
	for i := 0; i+1 < len(with); i += 2 {
		if s.With == nil {
			s.With = map[string]string{}
		}
		s.With[with[i]] = with[i+1]
	}
	return s
}

const (
	cart  = "deployments/shop/cart"
	web   = "deployments/shop/web"
	store = "statefulsets/shop/store"
	agent = "daemonsets/shop/agent"
	night = "cronjobs/shop/nightly"

	once   = "jobs/shop/import"
	report = "jobs/shop/report"

	app   = "configmaps/shop/app"
	extra = "configmaps/shop/extra"
	db    = "secrets/shop/db"
	late  = "configmaps/shop/late"
)

// written are histories of what users do most.
func written() map[string][]history.Step {
	return map[string][]history.Step{
		"a broken release is rolled back":    brokenReleases(),
		"configuration goes and comes back":  configuration(),
		"managed annotations get lost":       lostAnnotations(),
		"workloads are copied and made anew": copies(),
		"jobs are created again":             jobs(),
		"a CronJob is run":                   runs(),
		"reloads pause a Deployment":         pauses(),
		"the client proves what it knows":    clients(),
		"pods wait for a user":               strategies(),
		"deletions have a policy":            deletions(),
	}
}

// deletions are those of workloads after their pods, and without them.
func deletions() []history.Step {
	return []history.Step{
		step("delete-foreground", cart, "version", "1", "pause", "0s"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("delete-orphan", cart, "from", "export", "pause", "0s"),
		step("edit-config", app, "key", "greeting", "value", "v2"),
		step("delete-foreground", store, "held", "2s", "meanwhile", "apply", "version", "2", "pause", "0s"),
		step("delete-foreground", agent, "held", "2s", "pause", "0s"),
		step("edit-config", extra, "key", "level", "value", "v1"),
		step("delete-orphan", web, "from", "manifest", "version", "2", "pause", "0s"),
		step("delete-orphan", store, "from", "export", "pause", "0s"),
		step("apply-workload", agent, "version", "2"),
		step("delete-foreground", night, "version", "2", "pause", "0s"),
		step("edit-config", app, "key", "greeting", "value", "v3"),
	}
}

func brokenReleases() []history.Step {
	return []history.Step{
		step("release", cart, "version", "2"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("release-broken", cart),
		step("label-config", app, "value", "a"),
		step("undo", cart, "back", "1"),
		step("release-broken", store),
		step("edit-config", extra, "key", "level", "value", "v1"),
		step("undo", store, "back", "1"),
		step("undo", cart, "back", "2"),
		step("release", agent, "version", "3"),
		step("release-broken", agent),
		step("undo", agent, "back", "1"),
	}
}

func configuration() []history.Step {
	return []history.Step{
		step("delete-config", extra),
		step("create-config", extra),
		step("recreate-config", app, "pause", "0s"),
		step("recreate-config", db, "pause", atRest),
		step("create-config", late),
		step("recreate-config-changed", late, "key", "greeting", "value", "v1", "pause", "0s"),
		step("delete-config", late),
		step("edit-back", app, "key", "color", "value", "v1", "pause", "0s"),
		step("edit-back", app, "key", "color", "value", "v2", "pause", atRest),
		step("edit-config-binary", app, "key", "greeting"),
		step("edit-config", app, "key", "greeting", "value", "v4"),
		step("edit-many", "", "objects", app+","+extra+","+db, "value", "v3"),
		step("apply-config", db, "key", "password", "value", "v1", "as", "stringData"),
	}
}

func strategies() []history.Step {
	return []history.Step{
		step("scale", store, "replicas", "3"),
		step("set-update-strategy", store, "to", "partition=2"),
		step("edit-config", extra, "key", "level", "value", "v1"),
		step("delete-pod", store, "pod", "0"),
		step("set-update-strategy", store, "to", "partition=1"),
		step("edit-config", extra, "key", "level", "value", "v2"),
		step("set-update-strategy", store, "to", "partition=3"),
		step("delete-pod", store, "pod", "2"),
		step("set-update-strategy", store, "to", "OnDelete"),
		step("edit-config", extra, "key", "level", "value", "v3"),
		step("delete-pod", store, "pod", "1"),
		step("set-update-strategy", store, "to", "RollingUpdate"),
		step("release-broken", store),
		step("delete-pod", store, "pod", "0"),
		step("undo", store, "back", "1"),
		step("set-update-strategy", agent, "to", "OnDelete"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("delete-pod", agent, "pod", "0"),
		step("set-update-strategy", agent, "to", "RollingUpdate"),
	}
}

func lostAnnotations() []history.Step {
	return []history.Step{
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("replace-workload", cart, "version", "1"),
		step("scale", cart, "replicas", "4"),
		step("strip-annotations", web, "times", "1", "every", "0s"),
		step("opt-out", store, "lists", "both"),
		step("edit-config", extra, "key", "level", "value", "v1"),
		step("opt-in", store),
		step("scale", cart, "replicas", "1"),
		step("opt-out-put", agent),
		step("opt-in", agent),
		step("ignore", web, "label", "ignored"),
		step("edit-config", app, "key", "greeting", "value", "v2"),
		step("unignore", web),
	}
}

func copies() []history.Step {
	return []history.Step{
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("recreate-workload", cart, "from", "export", "version", "1", "pause", "0s"),
		step("recreate-workload", store, "from", "manifest", "version", "2", "pause", atRest),
		step("copy-workload", web, "to", web+"-copy"),
		step("copy-workload", agent, "to", "daemonsets/bank/agent"),
		step("copy-workload", night, "to", night+"-copy"),
		step("edit-config", app, "key", "color", "value", "v1"),
		step("restart", agent),
		step("edit-lists", cart, "configmaps", "extra"),
		step("pause-rollout", cart),
		step("edit-config", extra, "key", "flags", "value", "v1"),
		step("resume-rollout", cart),
		step("delete-workload", web),
	}
}

func jobs() []history.Step {
	return []history.Step{
		step("create-job", once, "asks", "auto", "endless", "true"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("edit-config", db, "key", "password", "value", "v1"),
		step("create-job", report, "asks", "auto", "endless", "false"),
		step("edit-config", app, "key", "greeting", "value", "v2"),
		step("delete-job", report),
		step("create-job", report, "asks", "named", "endless", "true", "suspended", "true"),
		step("edit-config", app, "key", "greeting", "value", "v3"),
		step("suspend-job", report, "value", "false"),
		step("edit-config", app, "key", "greeting", "value", "v4"),
		step("suspend-job", report, "value", "true"),
		step("delete-job", once),
		step("create-job", once, "asks", "auto", "endless", "true", "held", "true"),
		step("edit-config", app, "key", "greeting", "value", "v5"),
		step("release-job", once),
	}
}

func runs() []history.Step {
	return []history.Step{
		step("run-cronjob", night, "name", "by-hand-1", "endless", "false"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("ask-run", night, "for", "auto"),
		step("edit-config", app, "key", "greeting", "value", "v2"),
		step("run-cronjob", night, "name", "by-hand-2", "endless", "true"),
	}
}

func pauses() []history.Step {
	return []history.Step{
		step("ask-pause", cart, "period", "4s"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("release", cart, "version", "2"),
		step("edit-config", app, "key", "greeting", "value", "v2"),
		step("undo", cart, "back", "1"),
		step("pause-rollout", cart),
		step("edit-config", app, "key", "greeting", "value", "v3"),
		step("resume-rollout", cart),
		step("ask-pause", cart, "period", "absent"),
		step("edit-config", app, "key", "greeting", "value", "v4"),
	}
}

func clients() []history.Step {
	return []history.Step{
		step("verified-reload", cart, "attempts", "1", "bound", "false"),
		step("edit-config", app, "key", "greeting", "value", "v1"),
		step("verified-reload", cart, "attempts", "3", "bound", "true"),
		step("verified-reload-wrong", store, "digest", fmt.Sprintf("%064x", 7)),
		step("helm-upgrade", web, "version", "2", "config", app, "value", "v1"),
		step("helm-upgrade", web, "version", "7"), // which has no annotation of the template
		step("helm-rollback", web, "back", "2"),
		step("apply-workload", store, "version", "2"),
		step("apply-workload", store, "version", "1", "configmaps", "app,extra"),
		step("rotate-key", "secrets/pod-reloader/pod-reloader-digest-key", "seed", "1"),
		step("edit-config", db, "key", "password", "value", "v1"),
		step("lose-key", "secrets/pod-reloader/pod-reloader-digest-key", "seed", "2"),
		step("edit-config", db, "key", "password", "value", "v2"),
	}
}
