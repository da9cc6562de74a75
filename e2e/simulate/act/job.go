package act

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// CreateJob is the act that makes a Job.
	CreateJob = "create-job"
	// AskRun is the act by which a CronJob is run with each reload.
	AskRun = "ask-run"
	// SetConcurrency is the act that decides about Jobs of a CronJob at the same time.
	SetConcurrency = "set-concurrency"
	// RunCronJob is the act that makes such a Job.
	RunCronJob = "run-cronjob"
	// EndRun is the act that deletes it.
	EndRun = "end-run"
	// FirstRun is the name of a Job that users create from a CronJob.
	FirstRun = "by-hand-1"
	// SecondRun is the name of another one.
	SecondRun = "by-hand-2"
	// CronJob is the workload that it is done to.
	CronJob = "cronjobs/shop/nightly"
	// endless is an annotation of pods that never finish.
	endless = "example.com/endless"
)

// JobActs are the names of the acts about Jobs, and about CronJobs that are run with a reload.
func JobActs() []string {
	var names []string
	for _, a := range jobActs() {
		names = append(names, a.name)
	}
	return names
}

// RunActs are the names of the acts that decide together how a CronJob is run with a reload.
func RunActs() []string { return []string{AskRun, SetConcurrency, RunCronJob, EndRun} }

// jobPlans are those of the Jobs, none of which exists at first.
func jobPlans() []plan {
	var plans []plan
	for _, name := range []string{"import", "report"} {
		plans = append(plans, plan{
			resource: world.Jobs, name: name,
			configMaps: "app, extra", secrets: "db",
			envFrom: []source{{world.ConfigMaps, "app", true}, {world.Secrets, "db", true}},
			volumes: []source{{world.ConfigMaps, "extra", true}},
		})
	}
	return plans
}

func jobActs() []act {
	job, cronJob := onJob(), onWorkload(world.CronJobs)
	return []act{
		{
			name: CreateJob, weight: 4, on: job,
			with: []parameter{
				oneOf("asks", "auto", "auto", "named", "patterns", "search", "lists", "none"), oneOf("endless", "true", "true", "false"),
				oneOf("suspended", "false", "false", "false", "true"), oneOf("held", "false", "false", "false", "true"),
			},
			words: "user creates {on} (annotations: {asks}, never finishes: {endless}, suspended: {suspended}, with a finalizer: {held})",
			do:    createJob,
		},
		{
			name: "delete-job", weight: 1, on: mostlyAfter(job, CreateJob), words: "user deletes {on}",
			do: func(ctx context.Context, c client, s step) error { return c.delete(ctx, s.key) },
		},
		{
			name: "suspend-job", weight: 1, on: mostlyAfter(job, CreateJob), with: []parameter{oneOf("value", "true", "false")},
			words: "user sets spec.suspend of {on} to {value}", do: suspend,
		},
		{
			// A finalizer must not outlive the history: what it holds is not created again.
			name: "release-job", weight: 3, on: mostlyAfter(job, CreateJob), words: "another controller removes its finalizer from {on}",
			do: func(ctx context.Context, c client, s step) error {
				return c.merge(ctx, s.key, "holder", metadata("finalizers", nil))
			},
		},
		{
			name: AskRun, weight: 2, on: cronJob,
			with:  []parameter{required("for", isOneOf("auto", "named", "none"), pick("auto", "auto", "named", "none")), oneOf("lists", "removed", "kept")},
			words: "user annotates {on} for Reloader: {for} (lists of pod-reloader: {lists})",
			do:    askReloader,
		},
		{
			name: "suspend-cronjob", weight: 1, on: cronJob, with: []parameter{oneOf("value", "true", "false", "false")},
			words: "user sets spec.suspend of {on} to {value}", do: suspend,
		},
		{
			name: SetConcurrency, weight: 2, on: cronJob, with: []parameter{oneOf("policy", "Forbid", "Forbid", "Replace", "Replace", "Allow")},
			words: "user sets spec.concurrencyPolicy of {on} to {policy}",
			do: func(ctx context.Context, c client, s step) error {
				return c.merge(ctx, s.key, "kubectl-patch", world.Object{"spec": world.Object{"concurrencyPolicy": s.text("policy")}})
			},
		},
		{
			name: RunCronJob, weight: 2, on: cronJob,
			with:  []parameter{required("name", isOneOf(runNames()...), pick(runNames()...)), oneOf("endless", "true", "true", "false")},
			words: "user creates the Job {name} from {on} (never finishes: {endless})",
			do:    runCronJob,
		},
		{
			name: EndRun, weight: 3, on: cronJob, with: []parameter{required("name", isOneOf(runNames()...), pick(runNames()...))},
			words: "user deletes the Job {name}",
			do: func(ctx context.Context, c client, s step) error {
				return c.delete(ctx, world.Key{Resource: world.Jobs, Namespace: s.key.Namespace, Name: s.text("name")})
			},
		},
	}
}

// runNames are the names of the Jobs that users create from CronJobs.
func runNames() []string { return []string{FirstRun, SecondRun} }

// runCronJob is "kubectl create job --from", with an annotation on its pods.
func runCronJob(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	template := world.Section(live, "spec", "jobTemplate")
	annotations := with(world.Section(template, "metadata", "annotations"), "cronjob.kubernetes.io/instantiate", "manual")
	job := world.Object{
		"apiVersion": "batch/v1", "kind": "Job", "spec": world.Section(template, "spec"),
		"metadata": world.Object{
			"name": s.text("name"), "namespace": s.key.Namespace, "annotations": annotations,
			"ownerReferences": []any{world.Object{
				"apiVersion": "batch/v1", "kind": "CronJob", "name": s.key.Name, "uid": world.Section(live, "metadata")["uid"], "controller": true,
			}},
		},
	}
	if s.flag("endless") {
		path := []string{"spec", "template", "metadata", "annotations"}
		job = world.With(job, with(world.Section(job, path...), endless, "true"), path...)
	}
	key := world.Key{Resource: world.Jobs, Namespace: s.key.Namespace, Name: s.text("name")}
	return unlessThere(key, c.create(ctx, key, "kubectl-create", job))
}

// onJob is one of the Jobs.
func onJob() target {
	var names []string
	for _, p := range jobPlans() {
		names = append(names, "jobs/"+shop+"/"+p.name)
	}
	return target{
		parse: func(on string) (world.Key, error) {
			if !slices.Contains(names, on) {
				return world.Key{}, fmt.Errorf("%q is no Job that is known", on)
			}
			return parseKey(on, []world.Resource{world.Jobs})
		},
		draw: func(r *rand.Rand, _ []history.Step) string { return names[r.IntN(len(names))] },
	}
}

func createJob(ctx context.Context, c client, s step) error {
	manifest, err := workloadManifest(s.key, firstVersion)
	if err == nil && s.text("asks") != "lists" {
		manifest, err = asking(s.key, manifest, s.text("asks"))
	}
	if err != nil {
		return err
	}
	if s.flag("suspended") {
		manifest = world.With(manifest, true, "spec", "suspend")
	}
	if s.flag("endless") {
		manifest = world.With(manifest, "true", "spec", "template", "metadata", "annotations", endless)
	}
	if s.flag("held") {
		manifest = world.With(manifest, []any{heldBy}, "metadata", "finalizers")
	}
	return unlessThere(s.key, c.createApplied(ctx, s.key, manifest))
}

func suspend(ctx context.Context, c client, s step) error {
	return c.merge(ctx, s.key, "kubectl-patch", world.Object{"spec": world.Object{"suspend": s.flag("value")}})
}
