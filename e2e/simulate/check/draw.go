package check

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// installed is the installation of all histories: gates so short that a step is soon over.
func installed(trackFields bool) history.Setup {
	return history.Setup{
		Replicas: 1, Flags: []string{"--settle=200ms", "--settle-max=1s", "--refractory=0s"}, TrackFields: trackFields,
	}
}

// drawn makes the history of a seed, without faults.
func drawn(seed uint64, steps int) history.History {
	h := simulate.Draw(seed, simulate.DrawOptions{Steps: steps, BuiltinKinds: true})
	h.Setup = installed(h.Setup.TrackFields)
	h.Steps = tamed(h.Steps)
	return h
}

// tours deals out all acts, in an order that the seed decides, to n histories: each act occurs once.
func tours(seed uint64, n int) []history.History {
	r := rand.New(rand.NewPCG(seed, 0))
	catalogue := act.Catalogue()
	all := make([]history.History, n)
	for i, at := range r.Perm(len(catalogue)) {
		h := &all[i%n]
		if catalogue[at].Name == act.CreateRollout || catalogue[at].WeightGraph > 0 { // the control plane serves no such kind
			continue
		}
		h.Form, h.Seed, h.Setup = history.Form, seed+uint64(i%n), installed(true)
		h.Steps = append(h.Steps, tamed([]history.Step{catalogue[at].Draw(r, h.Steps)})...)
	}
	return all
}

// tamed returns steps that lead to the same on a fast and on a slow machine: what an act does at intervals is done at once,
// or so late that all has settled; and what users and the program would do in turns is done once.
func tamed(steps []history.Step) []history.Step {
	calm := make([]history.Step, 0, len(steps))
	for _, s := range steps {
		s.With = maps.Clone(s.With)
		for _, name := range slices.Sorted(maps.Keys(s.With)) {
			s.With[name] = tame(s.Do, name, s.With[name])
		}
		calm = append(calm, s)
	}
	return calm
}

func tame(do, parameter, value string) string {
	if _, err := time.ParseDuration(value); err != nil && parameter == "for" {
		return value // it says what a workload asks for
	}
	if parameter == "period" && value != "absent" && value != "soon" {
		return act.ShortPause // it must be over when the next step begins
	}
	if parameter == "policy" && value == "Forbid" {
		return "Replace" // a run that waits is tried again ever more rarely
	}
	return tameTime(do, parameter, value)
}

func tameTime(do, parameter, value string) string {
	switch parameter {
	case "pause":
		if value != "0s" {
			return "2s"
		}
	case "gap", "every":
		return "0s"
	case "for":
		if do == "fill-annotations" {
			return "2s" // the Deployment controller copies them meanwhile, or it does not: here it always does
		}
		return "0s"
	case "times":
		return "1"
	case "n":
		return "10"
	}
	return value
}

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
		"a broken release is rolled back": {
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
		},
		"configuration goes and comes back": {
			step("delete-config", extra),
			step("create-config", extra),
			step("recreate-config", app, "pause", "0s"),
			step("recreate-config", db, "pause", "2s"),
			step("create-config", late),
			step("recreate-config-changed", late, "key", "greeting", "value", "v1", "pause", "0s"),
			step("delete-config", late),
			step("edit-back", app, "key", "color", "value", "v1", "pause", "0s"),
			step("edit-back", app, "key", "color", "value", "v2", "pause", "2s"),
			step("edit-config-binary", app, "key", "greeting"),
			step("edit-config", app, "key", "greeting", "value", "v4"),
			step("edit-many", "", "objects", app+","+extra+","+db, "value", "v3"),
			step("apply-config", db, "key", "password", "value", "v1", "as", "stringData"),
		},
		"marks get lost": {
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
		},
		"workloads are copied and made anew": {
			step("edit-config", app, "key", "greeting", "value", "v1"),
			step("recreate-workload", cart, "from", "export", "version", "1", "pause", "0s"),
			step("recreate-workload", store, "from", "manifest", "version", "2", "pause", "2s"),
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
		},
		"jobs are created again": {
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
		},
		"a CronJob is run": {
			step("run-cronjob", night, "name", "by-hand-1", "endless", "false"),
			step("edit-config", app, "key", "greeting", "value", "v1"),
			step("ask-run", night, "for", "auto"),
			step("edit-config", app, "key", "greeting", "value", "v2"),
			step("run-cronjob", night, "name", "by-hand-2", "endless", "true"),
		},
		"reloads pause a Deployment": {
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
		},
		"the client proves what it knows": {
			step("verified-reload", cart, "attempts", "1", "bound", "false"),
			step("edit-config", app, "key", "greeting", "value", "v1"),
			step("verified-reload", cart, "attempts", "3", "bound", "true"),
			step("verified-reload-wrong", store, "digest", fmt.Sprintf("%064x", 7)),
			step("helm-upgrade", web, "version", "2", "config", app, "value", "v1"),
			step("helm-upgrade", web, "version", "3"),
			step("helm-rollback", web, "back", "2"),
			step("apply-workload", store, "version", "2"),
			step("apply-workload", store, "version", "1", "configmaps", "app,extra"),
			step("rotate-key", "secrets/pod-reloader/pod-reloader-digest-key", "seed", "1"),
			step("edit-config", db, "key", "password", "value", "v1"),
			step("lose-key", "secrets/pod-reloader/pod-reloader-digest-key", "seed", "2"),
			step("edit-config", db, "key", "password", "value", "v2"),
		},
	}
}

// histories are all that are compared, by name: those written down, all acts dealt out to some, and some of n seeds.
func histories(seed uint64, n int) map[string]history.History {
	all := map[string]history.History{}
	for name, steps := range written() {
		all[name] = history.History{Form: history.Form, Seed: 1, Setup: installed(false), Steps: steps}
	}
	for i, h := range tours(seed, 3) {
		all[fmt.Sprintf("tour %d", i+1)] = h
	}
	for i := range uint64(max(n, 0)) {
		all[fmt.Sprintf("seed %d", seed+i)] = drawn(seed+i, 15)
	}
	return all
}
