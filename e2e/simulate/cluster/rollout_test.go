package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestRolloutOfTheCustomKindReplacesPodsWhenTheTemplateChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.rollout()
		k.settle()
		before := k.ready()
		require.Len(t, before, 4)
		k.set(cart, "a", "metadata", "annotations", "note")
		k.settle()
		assert.Equal(t, before, k.ready(), "its own annotations replace nothing")
		k.image(cart, "cart:2")
		k.settle()
		assert.Empty(t, common(before, k.ready()))
		assert.Len(t, k.list(world.ReplicaSets), 2)
		assert.Equal(t, "Rollout", k.list(world.ReplicaSets)[0].GetOwnerReferences()[0].Kind)
		k.delete(cart)
		k.settle()
		assert.Empty(t, k.pods(), "the garbage collector knows the kind")
	})
}

// rollout creates a Rollout of four pods; more is YAML for its spec.
func (k *kit) rollout(more ...string) world.Key {
	k.t.Helper()
	return k.apply(strings.Replace(workload("Rollout", "cart:1", more...), "apps/v1", "argoproj.io/v1alpha1", 1))
}

// restart sets the time of a restart, relative to now, and returns it as text.
func (k *kit) restart(key world.Key, in time.Duration) string {
	k.t.Helper()
	at := time.Now().Add(in).UTC().Format(time.RFC3339)
	k.set(key, at, "spec", "restartAt")
	return at
}

func TestRolloutIsRestartedWithoutANewTemplate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// happens begins ten seconds after the pods were created.
		happens func(k *kit, cart world.Key)
		// kept of four pods; restarted means that the restart is noted.
		kept      int
		restarted bool
	}{
		"now":                             {func(k *kit, cart world.Key) { k.restart(cart, 0) }, 0, true},
		"in the past":                     {func(k *kit, cart world.Key) { k.restart(cart, -5*time.Second) }, 0, true},
		"before all pods":                 {func(k *kit, cart world.Key) { k.restart(cart, -time.Minute) }, 4, true},
		"in the second of their creation": {func(k *kit, cart world.Key) { k.restart(cart, -10*time.Second) }, 4, true},
		"in the future":                   {func(k *kit, cart world.Key) { k.restart(cart, time.Minute) }, 4, false},
		"in the future, and that is over": {func(k *kit, cart world.Key) { k.restart(cart, time.Minute); k.settle(); k.sleep(time.Minute) }, 0, true},
		"taken back": {func(k *kit, cart world.Key) {
			k.restart(cart, time.Minute)
			k.settle()
			k.set(cart, "", "spec", "restartAt")
			k.sleep(time.Hour)
		}, 4, false},
		"put forward": {func(k *kit, cart world.Key) {
			k.restart(cart, time.Hour)
			k.settle()
			k.restart(cart, time.Minute)
			k.settle()
			k.sleep(time.Minute)
		}, 0, true},
		"while the rollout is paused":      {func(k *kit, cart world.Key) { k.set(cart, true, "spec", "paused"); k.restart(cart, 0) }, 4, false},
		"while a release cannot start":     {func(k *kit, cart world.Key) { k.image(cart, "cart:broken"); k.settle(); k.restart(cart, 0) }, 3, false},
		"with a release":                   {func(k *kit, cart world.Key) { k.restart(cart, 0); k.image(cart, "cart:2") }, 0, true},
		"with a release that cannot start": {func(k *kit, cart world.Key) { k.restart(cart, 0); k.image(cart, "cart:broken") }, 3, false},
		"before a release that is undone": {func(k *kit, cart world.Key) {
			k.restart(cart, time.Second)
			k.settle()
			k.image(cart, "cart:broken")
			k.settle()
			k.image(cart, "cart:1")
			k.settle()
			k.sleep(time.Second)
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.rollout()
				k.settle()
				before := k.ready()
				require.Len(t, before, 4)
				k.sleep(10 * time.Second)
				tc.happens(k, cart)
				k.settle()
				assert.Len(t, common(before, k.pods()), tc.kept)
				noted := k.status(cart, "restartedAt") == any(world.Text(k.get(cart), "spec", "restartAt"))
				assert.Equal(t, tc.restarted, noted)
				writes := k.store.writes
				k.sleep(time.Hour)
				k.settle()
				if tc.restarted && tc.kept == 0 {
					assert.Equal(t, writes, k.store.writes, "it is over")
				}
			})
		})
	}
}

func TestRestartKeepsPodsAvailable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		strategy string
		least    int
	}{
		"defaults":               {"strategy: {}", 3},
		"none may be absent":     {careful, 3},
		"two may be absent":      {"strategy: {rollingUpdate: {maxUnavailable: 2, maxSurge: 0}}", 2},
		"some seconds to become": {"minReadySeconds: 5", 3},
	} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(k *kit) {
					k.choose = shuffled(seed)
					k.store.form = form(seed) % forms
					cart := k.rollout(tc.strategy)
					k.pass(time.Minute)
					before := k.ready()
					at := k.restart(cart, 0)
					choose, least := k.choose, 4
					k.choose = func(pending []string) string {
						least = min(least, len(k.ready()))
						return choose(pending)
					}
					k.pass(time.Minute)
					assert.Empty(t, common(before, k.pods()))
					assert.Len(t, k.ready(), 4)
					assert.Equal(t, tc.least, least)
					assert.Equal(t, at, k.status(cart, "restartedAt"))
					assert.Len(t, k.list(world.ReplicaSets), 1)
				})
			})
		}
	}
}

// A later restart that begins while one is going on replaces the pods that are younger than the first one, too.
func TestRestartWhileRestarting(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.rollout()
		k.settle()
		k.sleep(10 * time.Second)
		k.restart(cart, 0)
		before, younger := k.ready(), []string{}
		k.choose = func(pending []string) string {
			if len(common(before, k.ready())) == 2 && len(younger) == 0 {
				younger = k.pods()
				k.sleep(2 * time.Second)
				k.restart(cart, 0)
			}
			return pending[0]
		}
		k.settle()
		require.NotEmpty(t, younger)
		assert.Empty(t, common(younger, k.ready()))
		assert.Len(t, k.ready(), 4)
		assert.Equal(t, world.Text(k.get(cart), "spec", "restartAt"), k.status(cart, "restartedAt"))
	})
}

// pass lets time go by, and does all work that comes up.
func (k *kit) pass(d time.Duration) {
	k.t.Helper()
	end := time.Now().Add(d)
	for {
		k.settle()
		next, ok := k.c.Next()
		if !ok || next.After(end) {
			k.sleep(time.Until(end))
			return
		}
		k.sleep(time.Until(next))
	}
}
