package act

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func TestEveryDrawnStepIsCheckedWordedAndCarriedOut(t *testing.T) {
	t.Parallel()
	done := map[string]int{}
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) {
			f := newRecorder(t)
			c := Catalogue()
			steps := history.Draw(rand.New(rand.NewPCG(seed, 0)), c, history.DrawOptions{Steps: 100, SSA: true, Graph: seed >= 12})
			if seed >= 12 {
				require.NoError(t, SetupGraph(t.Context(), f))
			}
			require.NoError(t, c.Check(history.History{Steps: steps}))
			for _, s := range steps {
				words := mustFind(t, c, s.Do).Words(s)
				assert.NotRegexp(t, `\{[a-z]+(\|q)?\}`, words)
				assert.NotContains(t, words, "\\xff")
				err := Do(t.Context(), f, s)
				rejected := &RejectedError{}
				switch {
				case err == nil:
					done[s.Do]++
				case errors.Is(err, ErrSkipped):
				default:
					require.ErrorAs(t, err, &rejected, words)
				}
			}
		})
	}
	for _, e := range Catalogue() {
		if e.Weight+e.WeightSSA+e.WeightGraph == 0 {
			continue
		}
		switch e.Name {
		case "undo", "rotate-key", "lose-key", "delete-key-secret": // no revisions and no key Secret here
		case "noise-in-status", "unready-referent": // no status subresource
		default:
			assert.Positive(t, done[e.Name], "%s is never carried out", e.Name)
		}
	}
}

func mustFind(t *testing.T, c history.Catalogue, name string) history.Entry {
	t.Helper()
	e, ok := c.Find(name)
	require.True(t, ok, name)
	return e
}

func TestDrawingIsDeterministic(t *testing.T) {
	t.Parallel()
	draw := func() []history.Step {
		return history.Draw(rand.New(rand.NewPCG(7, 7)), Catalogue(), history.DrawOptions{Steps: 300, SSA: true})
	}
	first, second := draw(), draw()
	assert.Equal(t, first, second)
}

func TestServerSideApplyIsDrawnOnlyOnRequest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		for _, s := range history.Draw(rand.New(rand.NewPCG(seed, 1)), Catalogue(), history.DrawOptions{Steps: 100}) {
			assert.False(t, strings.HasPrefix(s.Do, "ssa-"), s.Do)
		}
	}
}

func TestCheckNamesTheWrongField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do, on string
		with   map[string]string
		want   string
	}{
		"unknown kind of object":    {"release", "jobs/shop/cart", map[string]string{"version": "2"}, `on: "jobs/shop/cart"`},
		"too few parts":             {"release", "deployments/cart", map[string]string{"version": "2"}, "on:"},
		"unknown namespace":         {"release", "deployments/kube-system/cart", map[string]string{"version": "2"}, "on:"},
		"unknown workload":          {"restart", "deployments/shop/other", nil, "on:"},
		"workload for config":       {"edit-config", "deployments/shop/cart", nil, "on:"},
		"restart of a CronJob":      {"restart", "cronjobs/shop/nightly", nil, "on:"},
		"undo of a CronJob":         {"undo", "cronjobs/shop/nightly", map[string]string{"back": "1"}, "on:"},
		"scale of a DaemonSet":      {"scale", "daemonsets/shop/agent", map[string]string{"replicas": "1"}, "on:"},
		"missing parameter":         {"release", "deployments/shop/cart", nil, "with.version: missing"},
		"unknown parameter":         {"restart", "deployments/shop/cart", map[string]string{"x": "1"}, "with.x: unknown"},
		"negative number":           {"release", "deployments/shop/cart", map[string]string{"version": "-1"}, "with.version"},
		"negative pause":            {"recreate-config", "configmaps/shop/app", map[string]string{"pause": "-1s"}, "with.pause"},
		"no pause":                  {"recreate-config", "configmaps/shop/app", map[string]string{"pause": "soon"}, "with.pause"},
		"unknown choice":            {"opt-out", "deployments/shop/cart", map[string]string{"lists": "all"}, "with.lists"},
		"short digest":              {"verified-reload-wrong", "deployments/shop/cart", map[string]string{"digest": "00"}, "with.digest"},
		"copy to another kind":      {"copy-workload", "deployments/shop/cart", map[string]string{"to": "statefulsets/bank/store"}, "with.to"},
		"copy to itself":            {"copy-workload", "deployments/shop/cart", map[string]string{"to": "deployments/shop/cart"}, "with.to"},
		"lists without a list":      {"edit-lists", "deployments/shop/cart", nil, "with.configmaps"},
		"an object among many":      {"edit-many", "", map[string]string{"objects": "configmaps/shop/app,pods/shop/x", "value": ""}, "with.objects"},
		"target where none belongs": {"edit-many", "configmaps/shop/app", nil, "on: must be empty"},
		"another key Secret":        {"rotate-key", "secrets/shop/db", map[string]string{"seed": "1"}, "on:"},
		"another namespace":         {"relabel-namespace", "namespaces/kube-system", nil, "on:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := history.Step{Do: test.do, On: test.on, With: test.with}
			require.ErrorContains(t, mustFind(t, Catalogue(), s.Do).Check(s), test.want)
			assert.ErrorContains(t, Do(t.Context(), nil, s), test.want)
		})
	}
}

func TestWordsLeaveOutWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		with map[string]string
		want string
	}{
		"no list":   {nil, "user applies version 2 of the manifest of deployments/shop/cart"},
		"one list":  {map[string]string{"secrets": "db"}, `user applies version 2 of the manifest of deployments/shop/cart, secrets "db"`},
		"two lists": {map[string]string{"configmaps": "", "secrets": "db"}, `user applies version 2 of the manifest of deployments/shop/cart, configmaps "", secrets "db"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := history.Step{Do: "apply-workload", On: cart, With: map[string]string{"version": "2"}}
			maps.Copy(s.With, test.with)
			assert.Equal(t, test.want, mustFind(t, Catalogue(), s.Do).Words(s))
		})
	}
}

func TestUnknownActIsAnError(t *testing.T) {
	t.Parallel()
	assert.ErrorContains(t, Do(t.Context(), nil, history.Step{Do: "kill"}), `"kill"`)
}

func TestActOnAMissingObjectIsSkipped(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	clear(f.objects)
	assert.ErrorIs(t, f.do("edit-config", "configmaps/shop/late", "key", "greeting", "value", "x"), ErrSkipped)
	assert.ErrorIs(t, f.do("release", "deployments/bank/web", "version", "2"), ErrSkipped)
	assert.ErrorIs(t, f.do("undo", "deployments/bank/web", "back", "1"), ErrSkipped)
	assert.ErrorIs(t, f.do("verified-reload", "deployments/bank/web", "attempts", "1"), ErrSkipped)
	assert.ErrorIs(t, f.do("rotate-key", "secrets/pod-reloader/pod-reloader-digest-key", "seed", "1"), ErrSkipped)
}

func TestRejectedWriteIsATypedError(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	f.reject = func(r Request) *Response {
		if r.Method != http.MethodPatch {
			return nil
		}
		answer := rejection(409, "Conflict")
		return &answer
	}
	rejected, ok := errors.AsType[*RejectedError](f.do("release", "deployments/shop/cart", "version", "2"))
	require.True(t, ok, "the error says how the write was rejected")
	assert.Equal(t, 409, rejected.Status)
	assert.Equal(t, "Conflict", rejected.Reason)
}

func TestPlainTextNotFoundIsARejection(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	f.reject = func(Request) *Response { return &Response{Status: 404, Body: []byte("404 page not found")} }
	err := f.do("delete-config", "configmaps/shop/app")
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrSkipped, "it is no word of the API server about the object")
}

func TestPauseEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			result <- Do(ctx, f, history.Step{Do: "recreate-config", On: "configmaps/shop/app", With: map[string]string{"pause": "30s"}})
		}()
		synctest.Wait()
		assert.Nil(t, f.get("configmaps/shop/app"))
		cancel()
		assert.ErrorIs(t, <-result, context.Canceled)
	})
}
