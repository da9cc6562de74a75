package history

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// long is a history of n steps, 7.3 s apart, whose acts are their numbers.
func long(n int) History {
	h := sample()
	h.Steps = nil
	for i := range n {
		h.Steps = append(h.Steps, Step{Do: strconv.Itoa(i), Wait: Duration(7300 * time.Millisecond)})
	}
	return h
}

// inOrder reports whether a history has some acts in this order.
func inOrder(h History, acts ...string) bool {
	for _, s := range h.Steps {
		if len(acts) > 0 && s.Do == acts[0] {
			acts = acts[1:]
		}
	}
	return len(acts) == 0
}

func names(h History) []string {
	var acts []string
	for _, s := range h.Steps {
		acts = append(acts, s.Do)
	}
	return acts
}

func TestShrinkKeepsOnlyWhatFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fails func(History) bool
		want  []string
	}{
		"one step":     {func(h History) bool { return inOrder(h, "61") }, []string{"61"}},
		"far apart":    {func(h History) bool { return inOrder(h, "3", "50", "97") }, []string{"3", "50", "97"}},
		"neighbours":   {func(h History) bool { return inOrder(h, "10", "11") }, []string{"10", "11"}},
		"first, last":  {func(h History) bool { return inOrder(h, "0", "99") }, []string{"0", "99"}},
		"always fails": {func(History) bool { return true }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shrunk := Shrink(long(100), test.fails, 1000)
			assert.Equal(t, test.want, names(shrunk))
			assert.Equal(t, Setup{Replicas: 1}, shrunk.Setup)
			assert.Empty(t, shrunk.Trace)
			for _, s := range shrunk.Steps {
				assert.Zero(t, s.Wait)
			}
		})
	}
}

func TestShrinkKeepsTheTimeThatMatters(t *testing.T) {
	t.Parallel()
	// The failure needs step 20 at least 30 s after step 2, which needs other steps or their time.
	fails := func(h History) bool {
		at, second := time.Duration(0), time.Duration(-1)
		for _, s := range h.Steps {
			at += time.Duration(s.Wait)
			switch s.Do {
			case "2":
				second = at
			case "20":
				return second >= 0 && at-second >= 30*time.Second
			}
		}
		return false
	}
	shrunk := Shrink(long(40), fails, 1000)
	assert.Equal(t, []string{"2", "20"}, names(shrunk))
	assert.True(t, fails(shrunk), "the shortened history still fails")
	assert.Zero(t, shrunk.Steps[0].Wait)
	assert.LessOrEqual(t, time.Duration(shrunk.Steps[1].Wait), 131400*time.Millisecond)
}

func TestShrinkKeepsTheSetupThatMatters(t *testing.T) {
	t.Parallel()
	h := long(5)
	h.Setup = Setup{Replicas: 5, Flags: []string{"--a", "--b", "--c"}, FailurePolicy: "Fail", OtherWebhooks: "after", TrackFields: true}
	shrunk := Shrink(h, func(h History) bool {
		return h.Setup.Replicas >= 2 && len(h.Setup.Flags) > 0 && h.Setup.Flags[len(h.Setup.Flags)-1] != "--a" &&
			h.Setup.OtherWebhooks == "after" && inOrder(h, "4")
	}, 500)
	assert.Equal(t, Setup{Replicas: 2, Flags: []string{"--b"}, OtherWebhooks: "after"}, shrunk.Setup)
}

func TestShrinkTriesTheDefaultOfEachSetting(t *testing.T) {
	t.Parallel()
	set := map[string]Setup{
		"failurePolicy": {FailurePolicy: "Fail"}, "otherWebhooks": {OtherWebhooks: "checksum"}, "graph": {Graph: true},
		"noStreamingLists": {NoStreamingLists: true}, "trackFields": {TrackFields: true}, "crashAtWrite": {CrashAtWrite: 3},
		"second": {Second: &Second{Replicas: 2, Before: true}}, "latency": {Latency: Duration(time.Millisecond)}, "flags": {Flags: []string{"--a"}}, "replicas": {Replicas: 2},
	}
	for name, setup := range set {
		setup.Replicas = max(setup.Replicas, 1)
		h := History{Form: Form, Setup: setup}
		assert.Equal(t, Setup{Replicas: 1}, Shrink(h, func(History) bool { return true }, 100).Setup, name)
		assert.False(t, setup.equal(Setup{Replicas: 1}), name)
		assert.True(t, setup.equal(setup), name)
	}
}

func TestShrinkMakesTheSecondInstallationPlainer(t *testing.T) {
	t.Parallel()
	before := Second{Replicas: 3, Before: true, Scope: "--a"}
	h := History{Form: Form, Setup: Setup{Replicas: 1, Second: &before}}
	shrunk := Shrink(h, func(h History) bool { return h.Setup.Second != nil && h.Setup.Second.Scope != "" }, 100)
	assert.Equal(t, &Second{Replicas: 1, Scope: "--a"}, shrunk.Setup.Second)
	assert.Equal(t, Second{Replicas: 3, Before: true, Scope: "--a"}, before, "the history that is made shorter stays as it is")
}

func TestReplicasOfBothInstallationsCount(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 1, Setup{}.All())
	assert.Equal(t, 3, Setup{Second: &Second{Replicas: 2}}.All())
	assert.Equal(t, 5, Setup{Replicas: 3, Second: &Second{Replicas: 2}}.All())
}

func TestShrinkStaysWithinItsBudget(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{0, 1, 7, 40} {
		calls := 0
		shrunk := Shrink(long(100), func(h History) bool { calls++; return inOrder(h, "17", "80") }, budget)
		assert.LessOrEqual(t, calls, budget)
		assert.True(t, inOrder(shrunk, "17", "80"), "the order of the steps remains")
	}
}

func TestShrinkIsDeterministicAndLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	fails := func(h History) bool { return inOrder(h, "5", "31") || inOrder(h, "8") }
	h := long(50)
	first, second := Shrink(h, fails, 300), Shrink(h, fails, 300)
	assert.Equal(t, first, second)
	want := long(50)
	assert.Equal(t, want, h)
}

func TestShrinkKeepsWhatCannotBeSimpler(t *testing.T) {
	t.Parallel()
	h := long(10)
	assert.Equal(t, h, Shrink(h, func(History) bool { return false }, 1000))
}
