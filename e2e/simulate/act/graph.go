package act

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The graph: proxy edge refers to the filters auth and limit, auth to a Secret that must exist, limit to a ConfigMap that may be
// absent. An operator looks after them (package simulate); a filter or a proxy of mode InvalidMode is not ready.

const (
	// Referents is the annotation that names the custom resources that a workload tracks.
	Referents = Prefix + "referents"
	// InvalidMode is a spec.mode that the operator does not accept.
	InvalidMode = "invalid"
)

// GraphConfiguration returns the ConfigMap with the configuration of pod-reloader that follows the graph.
func GraphConfiguration() (world.Key, world.Object) {
	return configurationKey(), world.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": world.Object{"name": Configuration, "namespace": System},
		"data": world.Object{"config.yaml": configurationHead + referentsSection},
	}
}

const referentsSection = `workloadKinds:
- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, template: spec.template}
referents:
- id: filters
  gvr: {group: proxy.example.com, version: v1, resource: filters}
  ready: {observedGeneration: status.observedGeneration, conditions: [{type: Ready}]}
  refs:
  - {to: secrets, name: spec.secretRef.name}
  - {to: configmaps, name: spec.configRef.name, optional: true}
- id: proxies
  gvr: {group: proxy.example.com, version: v1, resource: proxies}
  ready: {observedGeneration: status.observedGeneration, conditions: [{type: Ready}]}
  refs:
  - {to: filters, name: "spec.filterRefs[*].name"}
  publish: true
`

// SetupGraph creates the graph and opts two workloads in.
func SetupGraph(ctx context.Context, api API) error {
	c := client{api}
	for _, key := range graph() {
		if err := c.create(ctx, key, "kubectl-create", referentManifest(key)); err != nil {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	for _, key := range []world.Key{
		{Resource: world.Deployments, Namespace: shop, Name: "cart"}, {Resource: world.StatefulSets, Namespace: shop, Name: "store"},
	} {
		if err := c.refer(ctx, key, "proxies.proxy.example.com/edge"); err != nil {
			return fmt.Errorf("opt %s in: %w", key, err)
		}
	}
	return nil
}

// graph returns the keys of the custom resources that exist at first.
func graph() []world.Key {
	return []world.Key{
		{Resource: world.Filters, Namespace: shop, Name: "auth"},
		{Resource: world.Filters, Namespace: shop, Name: "limit"},
		{Resource: world.Proxies, Namespace: shop, Name: "edge"},
	}
}

// referentManifest returns a custom resource as it is at first.
func referentManifest(key world.Key) world.Object {
	name := func(name string) world.Object { return world.Object{"name": name} }
	spec := world.Object{"mode": "fast"}
	switch key.Name {
	case "auth":
		spec["secretRef"] = name("tls")
	case "limit":
		spec["configRef"] = name("late")
	case "edge":
		spec["filterRefs"] = []any{name("auth"), name("limit")}
	}
	return world.Object{
		"apiVersion": key.Resource.APIVersion(), "kind": key.Resource.Kind, "spec": spec,
		"metadata": world.Object{"name": key.Name, "namespace": key.Namespace},
	}
}

// onReferent is a custom resource of the graph; the filters are drawn most.
func onReferent(keys ...world.Key) target {
	return target{
		parse: func(on string) (world.Key, error) {
			key, err := parseTenant(on, world.GraphResources())
			if err == nil && !slices.Contains(keys, key) {
				return key, fmt.Errorf("%q is not in the graph", on)
			}
			return key, err
		},
		draw: func(r *rand.Rand, _ []history.Step) string { return keys[r.IntN(len(keys))].String() },
	}
}

func modeParameter() parameter {
	return required("mode", isText, pick("fast", "slow", "strict", "open", InvalidMode))
}

func graphActs() []act {
	return slices.Concat(referentActs(), referentLifeActs(), referActs())
}

func referentActs() []act {
	every, edge := onReferent(graph()...), onReferent(graph()[2])
	return []act{
		{
			name: "edit-referent", weightGraph: 30, on: every, with: []parameter{modeParameter()},
			words: "user sets spec.mode of {on} to {mode|q}",
			do:    func(ctx context.Context, c client, s step) error { return c.setMode(ctx, s.key, s.text("mode")) },
		},
		{
			name: "edit-references", weightGraph: 12, on: edge,
			with:  []parameter{required("filters", isText, pick("auth,limit", "auth,limit", "auth", "limit", "limit,auth", "auth,gone", ""))},
			words: "user has {on} refer to the filters {filters|q}",
			do: func(ctx context.Context, c client, s step) error {
				refs := []any{}
				for _, name := range world.Items(s.text("filters")) {
					refs = append(refs, world.Object{"name": name})
				}
				return c.merge(ctx, s.key, "kubectl-patch", world.Object{"spec": world.Object{"filterRefs": refs}})
			},
		},
		labelAct(act{name: "label-referent", weightGraph: 6, on: every}),
		{
			name: "noise-in-status", weightGraph: 8, on: every, with: []parameter{required("value", isText, pick("1", "2", "3", "4"))},
			words: "the operator sets status.seen of {on} to {value|q}, which means nothing",
			do: func(ctx context.Context, c client, s step) error {
				return c.mergeStatus(ctx, s.key, world.Object{"seen": s.text("value")})
			},
		},
		{
			name: "unready-referent", weightGraph: 4, on: every, with: []parameter{duration("pause", "500ms", "3s", "12s", "40s")},
			words: "the operator says that {on} is not ready, and {pause} later that it is",
			do:    flapReady,
		},
	}
}

// flapReady takes the condition away and brings it back, if it was not written by another client meanwhile.
func flapReady(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	ready, _ := world.Section(live, "status")["conditions"].([]any)
	if len(ready) == 0 {
		return skip("the operator has not looked at %s", s.key)
	}
	if err := c.mergeStatus(ctx, s.key, world.Object{"conditions": []any{}}); err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	live, err = c.get(ctx, s.key)
	if now, _ := world.Section(live, "status")["conditions"].([]any); err != nil || len(now) > 0 {
		return err
	}
	return c.mergeStatus(ctx, s.key, world.Object{"conditions": ready})
}

func referentLifeActs() []act {
	every := onReferent(graph()...)
	return []act{
		{
			name: "recreate-referent", weightGraph: 12, on: every, with: []parameter{pauseParameter(), optional("mode", omit, isText, seldom(2, pick("fast", "slow")))},
			words: "user deletes {on} and creates it after {pause}[ with spec.mode {mode|q}]",
			do: func(ctx context.Context, c client, s step) error {
				return c.recreate(ctx, s, func(object world.Object) {
					if s.has("mode") {
						object["spec"] = with(world.Section(object, "spec"), "mode", s.text("mode"))
					}
				})
			},
		},
		{
			name: "delete-referent", weightGraph: 12, on: every,
			words: "user deletes {on}",
			do:    func(ctx context.Context, c client, s step) error { return c.delete(ctx, s.key) },
		},
		{
			name: "create-referent", weightGraph: 16, on: mostlyAfter(every, "delete-referent"), with: []parameter{modeParameter()},
			words: "user creates {on} with spec.mode {mode|q}",
			do: func(ctx context.Context, c client, s step) error {
				object := referentManifest(s.key)
				object["spec"] = with(world.Section(object, "spec"), "mode", s.text("mode"))
				return unlessThere(s.key, c.create(ctx, s.key, "kubectl-create", object))
			},
		},
	}
}

func referActs() []act {
	workload := onWorkload(builtinResources()...)
	names := pick("proxies.proxy.example.com/edge", "proxies.proxy.example.com/edge", "proxies.proxy.example.com/edge",
		"filters.proxy.example.com/auth", "filters.proxy.example.com/limit, proxies.proxy.example.com/edge")
	return []act{
		{
			name: "refer", weightGraph: 10, on: workload, with: []parameter{required("to", isReferents, names)},
			words: "user has {on} track {to}",
			do:    func(ctx context.Context, c client, s step) error { return c.refer(ctx, s.key, s.text("to")) },
		},
		{
			name: "refer-no-more", weightGraph: 2, on: workload,
			words: "user has {on} track no custom resource",
			do:    func(ctx context.Context, c client, s step) error { return c.refer(ctx, s.key, nil) },
		},
		{
			name: "referent-and-release", weightGraph: 8, on: workload,
			with: []parameter{
				required("referent", isReferent, func(r *rand.Rand, _ world.Key) string { return graph()[r.IntN(len(graph()))].String() }),
				modeParameter(), versionParameter(), duration("gap", "0s", "20ms", "300ms", "2s"),
			},
			words: "user sets spec.mode of {referent} to {mode|q} and, {gap} later, the image of {on} to version {version}",
			do: func(ctx context.Context, c client, s step) error {
				key, err := onReferent(graph()...).parse(s.text("referent"))
				if err != nil {
					return err
				}
				if err := c.setMode(ctx, key, s.text("mode")); err != nil && !errors.Is(err, ErrSkipped) {
					return fmt.Errorf("edit %s: %w", key, err)
				}
				if err := pause(ctx, s.pause("gap")); err != nil {
					return err
				}
				return c.setVersion(ctx, s.key, s.number("version"))
			},
		},
	}
}

func isReferent(value string) error {
	_, err := onReferent(graph()...).parse(value)
	return err
}

// isReferents accepts a list of custom resources as in the annotation.
func isReferents(value string) error {
	for _, item := range world.Items(value) {
		resource, name, found := strings.Cut(item, "/")
		if !found || name == "" || resource != "filters.proxy.example.com" && resource != "proxies.proxy.example.com" {
			return fmt.Errorf("%q is not filters.proxy.example.com/NAME or proxies.proxy.example.com/NAME", item)
		}
	}
	return nil
}

// refer sets the annotation of a workload; nil takes it away.
func (c client) refer(ctx context.Context, key world.Key, to any) error {
	return c.merge(ctx, key, "kubectl-annotate", metadata("annotations", world.Object{Referents: to}))
}

func (c client) setMode(ctx context.Context, key world.Key, mode string) error {
	return c.merge(ctx, key, "kubectl-patch", world.Object{"spec": world.Object{"mode": mode}})
}

// mergeStatus patches the status subresource.
func (c client) mergeStatus(ctx context.Context, key world.Key, status world.Object) error {
	body, err := json.Marshal(world.Object{"status": status})
	if err != nil {
		return fmt.Errorf("encode the status of %s: %w", key, err)
	}
	_, err = c.do(ctx, Request{Method: "PATCH", Path: objectPath(key) + "/status" + query("operator"), ContentType: mergePatch, Body: body})
	return err
}
