package act

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// written returns the writes that were recorded, with what follows the path in the query.
func (f *recorder) written() []string {
	var writes []string
	for _, r := range f.requests {
		if r.Method != http.MethodGet {
			_, query, _ := strings.Cut(r.Path, "?")
			writes = append(writes, r.Method+" "+query)
		}
	}
	return writes
}

func TestDryRunPrecedesOrReplacesTheWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   string
		with []string
		want []string
	}{
		"no dry run": {"release", []string{"version", "2"}, []string{"PATCH fieldManager=kubectl-set"}},
		"only":       {"release", []string{"version", "2", "dry", "only"}, []string{"PATCH fieldManager=kubectl-set&dryRun=All"}},
		"first": {
			"release",
			[]string{"version", "2", "dry", "first"},
			[]string{"PATCH fieldManager=kubectl-set&dryRun=All", "PATCH fieldManager=kubectl-set"},
		},
		"server-side apply": {
			"ssa-workload", []string{"version", "2", "dry", "only"}, []string{"PATCH fieldManager=argocd&force=true&dryRun=All"},
		},
		"verified reload": {
			"verified-reload", []string{"attempts", "1", "dry", "only"}, []string{"PATCH fieldManager=client&dryRun=All"},
		},
		"creation": {
			"copy-workload", []string{"to", "deployments/bank/web", "dry", "only"}, []string{"POST fieldManager=kubectl-create&dryRun=All"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRecorder(t)
			on := cart
			if test.do == "copy-workload" {
				on = "deployments/shop/web"
			}
			require.NoError(t, f.do(test.do, on, test.with...))
			assert.Equal(t, test.want, f.written())
		})
	}
}

func TestDryRunOfAWriteWithoutAQueryBeginsOne(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	key := world.Key{Resource: world.Secrets, Namespace: shop, Name: "db"}
	require.NoError(t, client{dryRun{f}}.delete(t.Context(), key))
	assert.Equal(t, []string{"DELETE dryRun=All"}, f.written())
}

func TestRejectedDryRunKeepsTheUserFromNoWrite(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	f.reject = func(r Request) *Response {
		if !strings.Contains(r.Path, "dryRun") {
			return nil
		}
		answer := rejection(409, "Conflict")
		return &answer
	}
	require.NoError(t, f.do("release", cart, "version", "2", "dry", "first"))
	assert.Len(t, f.written(), 2)
	assert.True(t, rejectedFor(f.do("release", cart, "version", "2", "dry", "only"), "Conflict"), "the user sees the rejection")
}

func TestDryRunWithoutAnAnswerEndsTheAct(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sent := 0
	do := dryRunning(func(context.Context, client, step) error { sent++; return ctx.Err() })
	require.ErrorIs(t, do(ctx, client{}, step{with: map[string]string{dry: dryFirst}}), context.Canceled)
	assert.Equal(t, 1, sent)
}

func TestDryRunsAreDrawnForSomeStepsAndChangeNoOther(t *testing.T) {
	t.Parallel()
	c := Catalogue()
	steps := history.Draw(rand.New(rand.NewPCG(5, 0)), c, history.DrawOptions{Steps: 600, SSA: true})
	drawn := DryRuns(rand.New(rand.NewPCG(5, 11)), steps)
	require.NoError(t, c.Check(history.History{Steps: drawn}))
	counts := map[string]int{}
	for i, s := range drawn {
		assert.NotContains(t, steps[i].With, dry, "the steps given stay as they are")
		if value, is := s.With[dry]; is {
			counts[value]++
			assert.Contains(t, mustFind(t, c, s.Do).Words(s), "dry run: "+value)
			delete(s.With, dry)
		}
		assert.Len(t, s.With, len(steps[i].With))
		s.With, steps[i].With = nil, nil
		assert.Equal(t, steps[i], s)
	}
	assert.Greater(t, counts[dryOnly], 10)
	assert.Greater(t, counts[dryFirst], 10)
}

func TestEveryActThatMayBeADryRunIsKnown(t *testing.T) {
	t.Parallel()
	known := 0
	for _, a := range all {
		if mayBeDry(a.name) {
			known++
		}
	}
	assert.Equal(t, 15, known)
}
