package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// strategyKept is a workload whose restarts write what Reloader writes, and then a write that must leave all of it: a change of
// another object, a content that comes back, or a manifest without any of it.
func strategyKept(r *rand.Rand) situation {
	p := anyTracked(r)
	steps := []history.Step{p.edit("strategy-1", betweenSituations)}
	for range 2 {
		switch r.IntN(4) {
		case 0:
			steps = append(steps, history.Step{
				Do: "replace-workload", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"version": "2"},
			})
		case 1:
			steps = append(steps, p.edit("strategy-2", betweenSituations), p.edit("strategy-1", betweenSituations))
		case 2:
			steps = append(steps, history.Step{
				Do: "label-config", On: p.config, Wait: history.Duration(betweenSituations), With: map[string]string{"value": "y"},
			})
		case 3:
			steps = append(steps, other(p).edit("strategy-3", betweenSituations))
		}
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: steps, setup: func(setup *history.Setup) {
		setup.Flags = append(selection(setup.Flags), strategyFlag+pick(r, "env-vars", "env-vars", "annotations"))
	}}
}

// other is another object that the workload lists.
func other(p tracked) tracked {
	lists := map[string][]string{
		"deployments/shop/cart":   {"configmaps/shop/app", "configmaps/shop/extra"},
		"deployments/shop/web":    {"secrets/shop/db", "configmaps/shop/app"},
		"statefulsets/shop/store": {"configmaps/shop/extra", "secrets/shop/db"},
		"daemonsets/shop/agent":   {"configmaps/shop/app", act.LateConfig},
	}[p.workload]
	if p.config == lists[0] {
		p.config = lists[1]
	} else {
		p.config = lists[0]
	}
	return p
}

// pausedReload is a reload that pauses a Deployment, and what must not keep the pause from its end: a restart of the program, a
// further change, an operator who drops its begin, or a user who pauses it as well.
func pausedReload(r *rand.Rand) situation {
	p := tracked{pick(r, "deployments/shop/cart", "deployments/shop/web"), "configmaps/shop/app"}
	steps := []history.Step{
		{Do: act.AskPause, On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"period": pick(r, "15s", "40s")}},
	}
	if r.IntN(3) == 0 {
		steps = append(steps, history.Step{Do: "pause-rollout", On: p.workload, Wait: history.Duration(betweenSituations)})
	}
	steps = append(steps, p.edit("paused-1", adopted))
	switch r.IntN(5) {
	case 0:
		steps = append(steps, history.Step{Do: "kill", On: anyReplica(r), Wait: history.Duration(betweenSituations / 2), With: map[string]string{"for": "20s"}})
	case 1:
		steps = append(steps, p.edit("paused-2", betweenSituations/2))
	case 2:
		steps = append(steps, history.Step{Do: "resume-rollout", On: p.workload, Wait: history.Duration(betweenSituations / 2)})
	case 3:
		steps = append(steps, history.Step{Do: "ignore", On: p.workload, Wait: history.Duration(betweenSituations / 2), With: map[string]string{"label": "ignored"}})
	case 4:
		steps = append(steps, history.Step{Do: "strip-annotations", On: p.workload, Wait: history.Duration(betweenSituations / 2), With: map[string]string{
			"times": "1", "every": "0s",
		}})
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: steps}
}

// jobCreatedAgain is a Job that is created again, and a fault between two of the writes that this takes.
func jobCreatedAgain(r *rand.Rand) situation {
	p := tracked{"deployments/shop/web", "configmaps/shop/app"}
	job := pick(r, "jobs/shop/import", "jobs/shop/report")
	create := history.Step{Do: act.CreateJob, On: job, Wait: history.Duration(betweenSituations), With: map[string]string{
		"asks": pick(r, "auto", "named"), "endless": pick(r, "true", "true", "true", "false"), "suspended": pick(r, "false", "false", "true"),
		"held": pick(r, "false", "false", "true"),
	}}
	remove := history.Step{Do: "delete-job", On: job, Wait: history.Duration(betweenSituations / 4)}
	steps := []history.Step{remove, create, p.edit("job-1", adopted)}
	var setup func(*history.Setup)
	soon := history.Duration(time.Duration(r.IntN(30)) * 100 * time.Millisecond)
	switch r.IntN(6) {
	case 0, 4: // the writes take some seconds, so that the only replica is killed between two of them
		slow := history.Step{Do: "api-slow", Wait: soon / 3, With: map[string]string{"for": "20s", "by": "4s"}}
		kill := history.Step{Do: "kill", On: "replica-0", Wait: 5 * soon, With: map[string]string{"for": "10s"}}
		steps = append(steps, slow, kill)
		setup = func(s *history.Setup) { s.Replicas = 1 }
	case 1:
		steps = append(steps, history.Step{Do: "lose-answers", Wait: soon, With: map[string]string{"for": "8s", "percent": "60"}})
	case 2:
		steps = append(steps, history.Step{Do: "api-errors", Wait: soon, With: map[string]string{"for": "8s", "percent": "50", "code": pick(r, "409", "500", "503")}})
	case 3:
		steps = append(steps, p.edit("job-2", time.Duration(soon)))
	}
	if create.With["held"] == "true" {
		steps = append(steps, history.Step{Do: "release-job", On: job, Wait: history.Duration(betweenSituations)})
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: steps, setup: setup}
}

// jobInterrupted is a Job that runs, and the only replica is killed while it creates the Job again: each write takes some seconds.
func jobInterrupted(r *rand.Rand) situation {
	kill := history.Step{Do: "kill", On: "replica-0", Wait: amidWrites(r), With: map[string]string{"for": "10s"}}
	return jobWith(r, 1, kill)
}

// jobFrozen is a Job that runs, and the replica that creates it again is frozen in the middle: what it has sent may come late. The content
// goes back meanwhile, so that the other one has nothing to do.
func jobFrozen(r *rand.Rand) situation {
	freeze := history.Step{Do: "freeze", On: pick(r, "replica-0", "replica-0", "replica-1"), Wait: amidWrites(r), With: map[string]string{"for": "1m"}}
	back := tracked{config: "configmaps/shop/app"}.edit("first", time.Duration(r.IntN(100))*100*time.Millisecond)
	return jobWith(r, 2, freeze, back)
}

// amidWrites is a time within the writes of a re-creation, each of which takes some seconds, after the change that causes it.
func amidWrites(r *rand.Rand) history.Duration {
	return history.Duration(12*time.Second + time.Duration(r.IntN(140))*100*time.Millisecond)
}

// jobWith is a Job whose configuration changes while each write takes some seconds, and what happens then.
func jobWith(r *rand.Rand, replicas int, then ...history.Step) situation {
	p := tracked{"deployments/shop/web", "configmaps/shop/app"}
	job := pick(r, "jobs/shop/import", "jobs/shop/report")
	return situation{
		workload: p.workload, rest: untilPrompt,
		setup: func(s *history.Setup) { s.Replicas = replicas },
		steps: append([]history.Step{
			p.edit("first", betweenSituations/4),
			{Do: "delete-job", On: job, Wait: history.Duration(betweenSituations / 4)},
			{Do: act.CreateJob, On: job, Wait: history.Duration(betweenSituations), With: map[string]string{
				"asks": pick(r, "auto", "named"), "endless": "true", "suspended": "false", "held": "false",
			}},
			p.edit("interrupted", adopted),
			{Do: "api-slow", With: map[string]string{"for": "40s", "by": "4s"}},
		}, then...),
	}
}

// cronJobRun is a CronJob that is run with each reload.
func cronJobRun(r *rand.Rand) situation {
	p := tracked{act.CronJob, pick(r, "configmaps/shop/app", "secrets/shop/db")}
	steps := []history.Step{
		{Do: act.AskRun, On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"for": pick(r, "auto", "named"), "lists": pick(r, "removed", "kept")}},
	}
	if r.IntN(4) == 0 {
		steps = append(steps, history.Step{Do: "suspend-cronjob", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"value": "true"}})
	}
	policy := pick(r, "", "Forbid", "Forbid", "Replace", "Replace")
	if policy != "" {
		steps = append(steps, occupied(p.workload, policy)...)
	}
	steps = append(steps, p.edit("run-1", adopted))
	soon := time.Duration(r.IntN(30)) * 100 * time.Millisecond
	if r.IntN(3) == 0 { // it stamps the change before the program has run the CronJob
		steps = append(steps, history.Step{Do: "release", On: p.workload, Wait: history.Duration(soon / 3), With: map[string]string{"version": "6"}})
	}
	if policy == "Forbid" {
		steps = append(steps, freed(r, p.workload)...)
	}
	switch r.IntN(5) {
	case 0:
		steps = append(steps, history.Step{Do: "kill", On: anyReplica(r), Wait: history.Duration(soon), With: map[string]string{"for": "10s"}})
	case 1:
		steps = append(steps, history.Step{Do: "lose-answers", Wait: history.Duration(soon), With: map[string]string{"for": "8s", "percent": "60"}})
	case 2:
		steps = append(steps, p.edit("run-2", soon))
	case 3: // the lists let it count, Reloader's annotations only with a flag
		steps = append(steps, tracked{p.workload, "secrets/shop/db"}.does(act.DeleteConfig))
	case 4: // the Jobs are made, and no stamp is
		denied := history.Step{Do: withdrawWrites, On: p.resource(), With: map[string]string{"for": "3m", "verbs": "patch"}}
		steps = append(steps, denied, p.edit("run-2", adopted), p.edit("run-1", adopted), p.edit(pick(r, "run-1", "run-2"), adopted))
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: steps}
}

// freed ends the Job that keeps a CronJob from being run. Another one may have started before, as those of a schedule that leave no pause.
func freed(r *rand.Rand, cronJob string) []history.Step {
	end := history.Step{Do: act.EndRun, On: cronJob, Wait: history.Duration(adopted), With: map[string]string{"name": act.FirstRun}}
	if r.IntN(2) == 0 {
		return []history.Step{end}
	}
	next := history.Step{Do: act.RunCronJob, On: cronJob, Wait: history.Duration(adopted), With: map[string]string{"name": act.SecondRun, "endless": "true"}}
	end.Wait = history.Duration(time.Duration(r.IntN(10)) * time.Second)
	last := end
	last.With = map[string]string{"name": act.SecondRun}
	return []history.Step{next, end, last}
}

// occupied sets the concurrencyPolicy of a CronJob of which a Job is active.
func occupied(cronJob, policy string) []history.Step {
	return []history.Step{
		{Do: act.SetConcurrency, On: cronJob, Wait: history.Duration(betweenSituations / 2), With: map[string]string{"policy": policy}},
		{Do: act.RunCronJob, On: cronJob, Wait: history.Duration(time.Second), With: map[string]string{"name": act.FirstRun, "endless": "true"}},
	}
}
