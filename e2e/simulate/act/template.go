package act

import (
	"context"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func templateActs() []act {
	rolled := onWorkload(world.Deployments, world.StatefulSets, world.DaemonSets)
	return []act{
		{
			name: "restart", weight: 4, on: rolled,
			words: "user restarts {on}",
			do:    restart,
		},
		{
			name: "set-env-template", weight: 4, on: onWorkload(workloadResources()...),
			with:  []parameter{required("value", isEnvValue, pick("a", "b", "c"))},
			words: "user sets the environment variable NOTE in the template of {on} to {value|q}",
			do:    setEnv,
		},
		{
			name: "scale", weight: 5, on: onWorkload(world.Deployments, world.StatefulSets, world.Rollouts),
			with:  []parameter{number("replicas", 0, 20, "1", "2", "3", "4", "6", "0")},
			words: "user scales {on} to {replicas} replicas",
			do: func(ctx context.Context, c client, s step) error {
				return c.merge(ctx, s.key, "kubectl-scale", world.Object{"spec": world.Object{"replicas": s.number("replicas")}})
			},
		},
		{
			name: "pause-rollout", weight: 2, on: onWorkload(world.Deployments),
			words: "user pauses the rollout of {on}",
			do:    setPaused(true),
		},
		{
			// More often than pause-rollout: most histories should not end paused.
			name: "resume-rollout", weight: 4, on: mostlyAfter(onWorkload(world.Deployments), "pause-rollout"),
			words: "user resumes the rollout of {on}",
			do:    setPaused(nil),
		},
	}
}

// metadataActs change a workload outside its template.
func metadataActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		labelAct(act{name: LabelWorkload, weight: 5, on: anyWorkload}),
		annotateAct(act{name: "annotate-workload", weight: 3, on: anyWorkload}),
	}
}

// labelAct completes an act that labels an object.
func labelAct(a act) act {
	a.with, a.words = []parameter{required("value", isLabel, pick("a", "b", "c"))}, "user labels {on} note={value}"
	a.do = func(ctx context.Context, c client, s step) error {
		return c.merge(ctx, s.key, "kubectl-label", metadata("labels", world.Object{"note": s.text("value")}))
	}
	return a
}

// LabelWorkload is the act that sets a label of a workload, by which installations may divide the workloads.
const LabelWorkload = "label-workload"

// annotateAct completes an act that annotates an object.
func annotateAct(a act) act {
	a.with, a.words = []parameter{required("value", isText, pick("a", "b", "c"))}, "user annotates {on} example.com/note={value|q}"
	a.do = func(ctx context.Context, c client, s step) error {
		return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", world.Object{"example.com/note": s.text("value")}))
	}
	return a
}

// restart is "kubectl rollout restart". Two in the same second are one.
func restart(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	if isPaused(live) {
		return skip("%s is paused", s.key)
	}
	now := world.Object{"kubectl.kubernetes.io/restartedAt": time.Now().UTC().Format(time.RFC3339)}
	body := inTemplate(s.key.Resource, metadata("annotations", now))
	return c.patch(ctx, s.key, "kubectl-rollout", change{strategicPatch, body})
}

// setEnv is "kubectl set env".
func setEnv(ctx context.Context, c client, s step) error {
	container, err := containerName(s.key)
	if err != nil {
		return err
	}
	env := world.Object{"env": []any{world.Object{"name": "NOTE", "value": s.text("value")}}}
	return c.setInContainer(ctx, s.key, container, env)
}

func setPaused(value any) func(context.Context, client, step) error {
	return func(ctx context.Context, c client, s step) error {
		body := world.Object{"spec": world.Object{"paused": value}}
		return c.patch(ctx, s.key, "kubectl-rollout", change{strategicPatch, body})
	}
}
