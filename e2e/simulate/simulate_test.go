package simulate

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestMain(m *testing.M) {
	if IsWorker() {
		RunWorker()
		return
	}
	Prepare()
	flag.Parse()
	os.Exit(m.Run())
}

// fixedSeeds are run by every run of the tests, with and without faults; they must pass.
const fixedSeeds = 8

func known(t *testing.T) Known {
	t.Helper()
	list, err := ReadKnown()
	require.NoError(t, err)
	return list
}

func words(h history.History, violations []oracle.Violation) string {
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "%s (%s)\n  %s: %s\n", v.Law, v.Signature, v.Subject, v.Text)
	}
	return b.String() + h.Words(Catalogue())
}

// runner runs histories in a process of its own, with one processor, where a seed is a history.
func runner(t *testing.T) func(h history.History) outcome {
	t.Helper()
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { p.end() })
	return func(h history.History) outcome {
		o, err := p.do(job{History: h})
		require.NoError(t, err)
		return o
	}
}

// TestSeedsKeepTheLaws runs histories of a fixed range of seeds.
func TestSeedsKeepTheLaws(t *testing.T) {
	t.Parallel()
	list := known(t)
	for name, faults := range map[string]bool{"without faults": false, "with faults": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := runner(t)
			for seed := range uint64(fixedSeeds / thin) {
				h := Draw(seed+1, DrawOptions{Steps: 40, Faults: faults})
				o := run(h)
				if unknown := list.Unknown(o.Violations); len(unknown) > 0 {
					t.Error(words(h, unknown))
				}
				assert.Positive(t, o.Judged["pods judged"]+o.Judged["pods replaced"], "nothing is judged: it shows nothing")
			}
		})
	}
}

// TestKeptHistories replays what was found before. A history whose law is known to be broken must go on breaking it: where it
// does not, the defect is mended, and leaves both the list and the file.
func TestKeptHistories(t *testing.T) {
	t.Parallel()
	list, runners := known(t), make(chan func(history.History) outcome, runtime.GOMAXPROCS(0))
	for range cap(runners) {
		runners <- runner(t)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		if i%thin != 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			run := <-runners
			defer func() { runners <- run }()
			h, err := ReadHistory(file)
			require.NoError(t, err)
			o := run(h)
			takesPlace(t, h, o, !slices.Contains(unshortened(), filepath.Base(file)))
			violations := o.Violations
			if unknown := list.Unknown(violations); len(unknown) > 0 {
				t.Error(words(h, unknown))
			}
			if list.Concerns(h) {
				assert.True(t, breaks(violations, h), "%s is not broken any more: take it out of known.yaml", h.Law)
			}
		})
	}
}

// unshortened are kept histories in which acts have nothing to act on or fail; how many depends on the scheduler.
func unshortened() []string {
	return []string{
		"changed-before-a-direct-write.json", "content-returns-while-a-recreation-is-completed.json", "copied-unseen-before-key-loss.json",
		"counted-early-by-a-clock-ahead.json", "deletion-comes-late-after-its-manifest-was-dropped.json", "direct-stamp-undone.json",
		"full-annotations-while-watch-held.json", "job-deleted-by-a-user-while-it-is-created-again.json",
		"label-before-a-creation-that-reloads.json", "manifest-is-listed-during-a-reconciliation.json",
		"next-leader-recreates-before-it-has-listed-manifests.json", "pause-of-a-reload-stamped-by-the-second-pass.json",
		"referent-unreadable-at-a-request.json", "release-within-the-settle-window.json", "reload-in-flight-when-the-key-is-lost.json",
		"request-before-configuration-read.json", "undo-across-lost-key-before-first-stamp.json",
	}
}

// takesPlace asserts that the faults of a kept history have taken place, and the acts: all of them, or some. A fault of a replica that the
// installation does not have takes no place. One of a replica that does not lead may meet no request: which one leads first is left to
// the scheduler.
func takesPlace(t *testing.T, h history.History, o outcome, all bool) {
	t.Helper()
	faults, acts, some := map[string]int{}, 0, false
	for _, step := range h.Steps {
		_, fault := findFault(step.Do)
		switch {
		case !fault:
			acts++
		case !isProgram(step.On) || step.On < replicaName(max(h.Setup.Replicas, 1)):
			faults[step.Do]++
			some = some || step.With["percent"] != "" && step.Do != "webhook-flaky" && !isProgram(step.On)
		}
	}
	if !all {
		acts = min(acts, 1)
	}
	assert.GreaterOrEqual(t, o.Judged["acts done"], acts, "acts have nothing to act on: the history may show nothing")
	for name, n := range faults {
		assert.GreaterOrEqual(t, o.Tried[name], n, "the fault %s does not begin: the history may show nothing", name)
	}
	if some {
		assert.Positive(t, o.Hits, "no request meets a fault: the history shows nothing")
	}
}

// breaks reports whether a run broke the law for which its history is kept.
func breaks(violations []oracle.Violation, h history.History) bool {
	return slices.ContainsFunc(violations, func(v oracle.Violation) bool { return v.Signature == h.Law || v.Law == h.Law })
}

func TestKnownDefectConcernsHistories(t *testing.T) {
	t.Parallel()
	list := Known{{Signature: "kept/*"}, {Signature: "prompt/modified"}}
	for law, want := range map[string]bool{
		"kept/update": true, "kept": true, "prompt/modified": true, "prompt/deleted": false, "prompt": false, "jobs": false, "": false,
	} {
		assert.Equal(t, want, list.Concerns(history.History{Law: law}), law)
	}
	violations := []oracle.Violation{{Law: "kept", Signature: "kept/update"}}
	for law, want := range map[string]bool{"kept/update": true, "kept": true, "kept/patch": false, "prompt": false} {
		assert.Equal(t, want, breaks(violations, history.History{Law: law}), law)
	}
}

// TestShrinkKeepsWhatFails shows the whole way from a failure to a short history.
func TestShrinkKeepsWhatFails(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	defer p.end()
	// The program does not read the lists of Reloader then, which the oracle does not know.
	h := Draw(3, DrawOptions{Steps: 1})
	h.Law, h.Setup = "prompt/modified", history.Setup{Replicas: 1, Flags: []string{
		"--configmap-annotation=example.org/configmaps", "--secret-annotation=example.org/secrets",
	}}
	h.Steps = []history.Step{
		recreated("deployments/shop/cart", "named"), tracked{"deployments/shop/cart", "secrets/shop/db"}.edit("v2", time.Minute),
	}
	needed := len(h.Steps)
	h.Steps = append(h.Steps, Draw(3, DrawOptions{Steps: 5}).Steps...)
	o, err := p.do(job{History: h, Shrink: 40, Want: h.Law})
	require.NoError(t, err)
	require.NotNil(t, o.Short)
	assert.LessOrEqual(t, len(o.Short.Steps), needed)
	assert.True(t, hasSignature(o.Violations, h.Law), "the shortened history breaks the same law")
	assert.Equal(t, h.Law, o.Short.Law)
	assert.NotEmpty(t, o.Trace, "a run that breaks a law has a trace")

	// A run that breaks another law than the one wanted is not made shorter.
	o, err = p.do(job{History: h, Shrink: 40, Want: "kept/undo"})
	require.NoError(t, err)
	assert.Nil(t, o.Short)
	assert.NotEmpty(t, o.Trace)
	assert.True(t, hasSignature(o.Violations, h.Law), "the history breaks the law that is not wanted")
}

func TestProgramKnowsCustomResourcesByItsConfigurationOnly(t *testing.T) {
	t.Parallel()
	assert.True(t, knowsGraph(history.Setup{}), "there are no custom resources")
	assert.True(t, knowsGraph(history.Setup{Graph: true, Flags: []string{"--settle=0s", configMapFlag}}), "it has a configuration")
	assert.False(t, knowsGraph(history.Setup{Graph: true, Flags: []string{"--settle=0s"}}), "it holds them, which is no failure")
}

func TestHuntReportsWhatItRan(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	var out strings.Builder
	dir := t.TempDir()
	found, err := Hunt(t.Context(), &out, HuntOptions{
		Seed: 1, N: 2, Workers: 1, Draw: DrawOptions{Steps: 10}, Out: dir, CPUProfile: filepath.Join(dir, "cpu"),
	})
	require.NoError(t, err)
	assert.False(t, found, out.String())
	assert.Contains(t, out.String(), "2 histories with 20 steps")
	assert.Contains(t, out.String(), "2 passed, 0 failed")
	assert.Regexp(t, `processor time: [1-9]\S*s, [1-9]\S*s for each history`, out.String())
	profiles, err := filepath.Glob(filepath.Join(dir, "cpu.*"))
	require.NoError(t, err)
	require.Len(t, profiles, 1)
	content, err := os.ReadFile(profiles[0])
	require.NoError(t, err)
	assert.NotEmpty(t, content)
}

func TestReplayRefusesWhatIsNoHistory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ content, want string }{
		"another form": {`{"form": 9, "seed": 1, "setup": {"replicas": 1}, "steps": []}`, "form"},
		"no JSON":      {`hello`, "invalid"},
		"unknown act":  {`{"form": 1, "seed": 1, "setup": {"replicas": 1}, "steps": [{"do": "dance"}]}`, "dance"},
		"no duration":  {`{"form": 1, "seed": 1, "setup": {"replicas": 1}, "steps": [{"do": "kill", "on": "replica-0", "with": {"for": "soon"}}]}`, "soon"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "history.json")
			require.NoError(t, os.WriteFile(file, []byte(tt.content), 0o600))
			_, err := Replay(t.Context(), io.Discard, file, false)
			var usage *UsageError
			require.ErrorAs(t, err, &usage)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestKnownDefectFitsSignatures(t *testing.T) {
	t.Parallel()
	list := Known{{Signature: "kept/update"}, {Signature: "prompt/*"}, {Signature: "explained/*-doubled"}}
	for signature, want := range map[string]bool{
		"kept/update": true, "kept/update-more": false, "prompt/modified": true, "prompt": false,
		"explained/event-doubled": true, "explained/event-missing": false,
	} {
		assert.Equal(t, want, list.Has(oracle.Violation{Signature: signature}), signature)
	}
}
