package simulate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// fakeWorker answers jobs by a function. It counts those that came after one with which it crashed.
type fakeWorker struct {
	answer func(j job) (outcome, error)
	ended  bool
	late   int
}

func (w *fakeWorker) do(j job) (outcome, error) {
	if w.ended {
		w.late++
	}
	o, err := w.answer(j)
	w.ended = w.ended || err != nil
	return o, err
}

func (w *fakeWorker) end() time.Duration { return time.Second }

// fakeHunt hunts with fake workers for some histories. It returns what it prints and the histories it keeps.
func fakeHunt(t *testing.T, n int, answer func(j job) (outcome, error)) (printed string, kept []history.History, started int) {
	t.Helper()
	var out strings.Builder
	h := newHunt(&out, nil, HuntOptions{Seed: 1, N: n, Draw: DrawOptions{Steps: 20}, Out: t.TempDir(), Shrink: 30})
	var workers []*fakeWorker
	h.start = func(context.Context) (worker, error) {
		workers = append(workers, &fakeWorker{answer: answer})
		return workers[len(workers)-1], nil
	}
	require.NoError(t, h.work(t.Context()))
	for _, w := range workers {
		assert.Zero(t, w.late, "a worker that has ended was given a job")
	}
	assert.Equal(t, time.Duration(len(workers))*time.Second, h.sums.processor)
	files, err := filepath.Glob(filepath.Join(h.options.Out, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		k, err := history.Read(file, Catalogue())
		require.NoError(t, err)
		kept = append(kept, k)
	}
	return out.String(), kept, len(workers)
}

func broken(signature string) oracle.Violation {
	law, _, _ := strings.Cut(signature, "/")
	return oracle.Violation{Law: law, Signature: signature, Subject: "deployments/shop/cart", Text: "it lost its pods"}
}

func TestHuntKeepsTheFirstRunWhereTheRepeatDoesNotFail(t *testing.T) {
	t.Parallel()
	tests := map[string]outcome{
		"no law is broken":      {},
		"another law is broken": {Violations: []oracle.Violation{broken("idle/get")}, Trace: []string{"another"}},
	}
	for name, repeat := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, kept, _ := fakeHunt(t, 1, func(j job) (outcome, error) {
				if j.Shrink > 0 {
					assert.Equal(t, []string{"a", "b"}, j.History.Trace, "the repeat follows the decisions of the first run")
					assert.Equal(t, "kept/undo", j.Want)
					return repeat, nil
				}
				return outcome{Violations: []oracle.Violation{broken("kept/undo")}, Trace: []string{"a", "b"}}, nil
			})
			require.Len(t, kept, 1)
			assert.Equal(t, []string{"a", "b"}, kept[0].Trace)
			assert.Equal(t, "kept/undo", kept[0].Law)
			assert.Equal(t, "deployments/shop/cart: it lost its pods", kept[0].About)
			assert.Len(t, kept[0].Steps, 20)
		})
	}
}

func TestHuntKeepsTheShorterHistory(t *testing.T) {
	t.Parallel()
	printed, kept, started := fakeHunt(t, 3, func(j job) (outcome, error) {
		o := outcome{Violations: []oracle.Violation{broken("kept/undo")}}
		if j.Shrink > 0 {
			short := failed(history.History{Form: history.Form, Seed: j.History.Seed, Steps: j.History.Steps[:1]}, broken("kept/undo"), nil)
			o.Short = &short
		}
		return o, nil
	})
	require.Len(t, kept, 1, "the others fail in the same way")
	assert.Len(t, kept[0].Steps, 1)
	assert.Equal(t, 1, started)
	assert.Contains(t, printed, `seed 1 breaks the law "kept"`)
	assert.Contains(t, printed, "seed 2: kept/undo again")
}

func TestCrashIsMadeShorter(t *testing.T) {
	t.Parallel()
	for signature, want := range map[string]*crashError{
		crashed: {text: "EOF\npanic: no space"}, hung: {hung: true, text: "EOF\nSIGQUIT: quit"},
	} {
		t.Run(signature, func(t *testing.T) {
			t.Parallel()
			drawn := Draw(1, DrawOptions{Steps: 20})
			cause := drawn.Steps[11]
			attempts := 0
			printed, kept, started := fakeHunt(t, 2, func(j job) (outcome, error) {
				attempts++
				switch {
				case !slices.ContainsFunc(j.History.Steps, func(s history.Step) bool { return assert.ObjectsAreEqual(cause, s) }):
					return outcome{}, nil
				case len(j.History.Steps) == 3: // another end is no shorter form of this one
					return outcome{}, &crashError{hung: !want.hung}
				}
				return outcome{}, want
			})
			require.Len(t, kept, 1)
			assert.NotEmpty(t, kept[0].Steps)
			assert.Less(t, len(kept[0].Steps), 5)
			assert.Equal(t, signature, kept[0].Law)
			assert.Contains(t, kept[0].About, want.text)
			assert.Contains(t, printed, `breaks the law "alive"`)
			assert.LessOrEqual(t, attempts, 2+30, "no more attempts than asked for")
			assert.GreaterOrEqual(t, started, attempts-2, "each attempt has a worker of its own")
		})
	}
}

func TestWorkerThatCrashesWhileItShortensIsReplaced(t *testing.T) {
	t.Parallel()
	printed, kept, started := fakeHunt(t, 2, func(j job) (outcome, error) {
		switch {
		case j.Shrink > 0:
			return outcome{}, &crashError{text: "EOF"}
		case j.History.Seed == 1:
			return outcome{Violations: []oracle.Violation{broken("kept/undo")}}, nil
		}
		return outcome{}, nil
	})
	require.Len(t, kept, 1)
	assert.Equal(t, 2, started)
	assert.NotContains(t, printed, "seed 2")
}

func TestHuntEndsWhereNoWorkerStarts(t *testing.T) {
	t.Parallel()
	h := newHunt(&strings.Builder{}, nil, HuntOptions{Seed: 1, N: 1, Draw: DrawOptions{Steps: 1}})
	h.start = func(context.Context) (worker, error) { return nil, os.ErrPermission }
	require.ErrorIs(t, h.work(t.Context()), os.ErrPermission)
}

func TestHuntBeginsOnlyWhereItCanKeepHistories(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Hunt(t.Context(), &strings.Builder{}, HuntOptions{Seed: 1, N: 1, Out: filepath.Join(file, "histories")})
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	assert.ErrorContains(t, err, "keep histories that fail: ")
}

func TestWorkerThatDoesNotEndIsEnded(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	defer p.end()
	_, err = p.do(job{History: Draw(1, DrawOptions{Steps: 5}), limit: time.Millisecond})
	var crash *crashError
	require.ErrorAs(t, err, &crash)
	assert.Equal(t, hung, crash.signature())
	require.ErrorContains(t, err, "the simulation does not end")
}

func TestCrashNamesItsCauseAndNotAllStacks(t *testing.T) {
	t.Parallel()
	crash := &crashError{text: "panic: no space\n" + strings.Repeat("goroutine 1 [running]\n", 10_000)}
	require.ErrorContains(t, crash, "the simulation crashed: panic: no space")
	assert.LessOrEqual(t, len(crash.violation().Text), crashText)
}
