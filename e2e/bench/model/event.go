package model

import (
	"errors"
	"fmt"
	"maps"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Event is a type of watch event that makes no reload due.
type Event struct {
	Name string
	// Limit is how many times as much processor time it may take in a large cluster as in a small one. Where each event makes pod-reloader look
	// at all of 20,000 workloads, it takes more.
	Limit float64
	send  func(m *Model, n, turn int) error
}

const (
	// inTurn is how many objects have an event in one turn, and groups how many such groups of objects have their turn, one after the other.
	// So the events of an object come apart, and each is handled by itself. They are those of one namespace, or as many namespaces.
	inTurn, groups = 100, 4
	// cycle is in how many turns each object is created and deleted.
	cycle = 2 * groups
	// InRound is how many events are in one round.
	InRound = cycle * inTurn
)

// Events are those that a cluster has all the time.
func Events() []Event {
	const scratch = "example.com/scratch"
	return []Event{
		{"an untracked ConfigMap is changed", 2, func(m *Model, n, turn int) error {
			return m.store(world.ConfigMaps, m.namespaceOf(n), named("other", n), configMapObject(fmt.Sprint(turn)))
		}},
		{"an untracked ConfigMap is created or deleted", 2, func(m *Model, n, turn int) error {
			key := world.Key{Resource: world.ConfigMaps, Namespace: m.namespaceOf(n), Name: named("brief", n)}
			return m.comeAndGo(key, turn, func() error { return m.store(key.Resource, key.Namespace, key.Name, configMapObject(unchanged)) })
		}},
		{"a tracked ConfigMap has another annotation", 1.3, func(m *Model, n, turn int) error {
			return m.edit(world.ConfigMaps, m.namespaceOf(n), named("config", n), fmt.Sprint(turn), "metadata", "annotations", scratch)
		}},
		{"a workload has another status", 2, func(m *Model, n, turn int) error {
			return m.edit(world.Deployments, m.namespaceOf(n), named("web", n), int64(turn+1), "status", "replicas")
		}},
		{"a workload has another label", 2, func(m *Model, n, turn int) error {
			return m.edit(world.Deployments, m.namespaceOf(n), named("web", n), fmt.Sprint(turn), "metadata", "labels", scratch)
		}},
		{"a workload is scaled", 2, func(m *Model, n, turn int) error {
			return m.edit(world.Deployments, m.namespaceOf(n), named("web", n), int64(turn+2), "spec", "replicas")
		}},
		{"a workload is created or deleted", 2, func(m *Model, n, turn int) error {
			key := world.Key{Resource: world.Deployments, Namespace: m.namespaceOf(n), Name: named("brief", n)}
			return m.comeAndGo(key, turn, func() error { return m.deploy(n, key.Name, unchanged) })
		}},
		{"a namespace without workloads has another label", 2, func(m *Model, n, turn int) error {
			return m.namespace(named("empty", n), map[string]any{Selected: "yes", "turn": fmt.Sprint(turn)})
		}},
	}
}

// Send sends the events of a round. Between the turns it calls rest. Rounds count from 0.
func (m *Model) Send(e Event, round int, rest func() error) error {
	for turn := round * cycle; turn < (round+1)*cycle; turn++ {
		first := turn % groups * inTurn
		for n := first; n < first+inTurn; n++ {
			if err := e.send(m, n, turn); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
		}
		if err := rest(); err != nil {
			return err
		}
	}
	return nil
}

// comeAndGo creates an object in one of its turns, and deletes it in the next one.
func (m *Model) comeAndGo(key world.Key, turn int, create func() error) error {
	if turn%cycle < groups {
		return create()
	}
	if !m.server.Remove(key) {
		return errors.New("there is nothing to delete")
	}
	return nil
}

// edit gives a field of an object another value.
func (m *Model) edit(resource world.Resource, namespace, name string, value any, path ...string) error {
	stored, found := m.server.Get(world.Key{Resource: resource, Namespace: namespace, Name: name})
	if !found {
		return fmt.Errorf("there is no %s %s/%s", resource.Plural, namespace, name)
	}
	changed := maps.Clone(stored) // it is shared, as are the maps in it
	part, last := changed, len(path)-1
	for _, field := range path[:last] {
		inner, _ := part[field].(map[string]any)
		if inner = maps.Clone(inner); inner == nil {
			inner = map[string]any{}
		}
		part[field], part = inner, inner
	}
	part[path[last]] = value
	return m.store(resource, namespace, name, changed)
}
