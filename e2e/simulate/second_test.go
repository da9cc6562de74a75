package simulate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestThemesWithASecondInstallation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sides", "shared"} {
		n := 0
		for seed := range uint64(20) {
			h := Draw(seed, DrawOptions{Steps: 60, Faults: true, Theme: name})
			if h.Setup.Graph {
				continue
			}
			require.NotNil(t, h.Setup.Second, name)
			require.NoError(t, CheckFlags(flagsOfSecond(h.Setup)))
			n++
		}
		assert.Positive(t, n)
	}
}

func TestSelectorsDivideAllWorkloads(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		setup := history.Setup{Flags: []string{"--workers=1", "--namespaces=shop"}}
		divided(rand.New(rand.NewPCG(seed, 23)), &setup)
		sides, err := sidesOf(setup)
		require.NoError(t, err)
		for _, label := range []string{"a", "b", "3"} {
			got := sides("shop", map[string]string{"team": label}, map[string]string{"note": label, "version": label})
			assert.NotEqual(t, got.First, got.Second, "%v and %s", setup.Flags, setup.Second.Scope)
		}
	}
}

func TestFlagsOfTheSecondInstallation(t *testing.T) {
	t.Parallel()
	assert.Empty(t, flagsOfSecond(history.Setup{Flags: []string{"--workers=1"}}), "there is none")
	s := history.Setup{
		Flags:  []string{"--workers=1", "--object-selector=note!=b"},
		Second: &history.Second{Replicas: 1, Scope: "--object-selector=note=b"},
	}
	assert.Equal(t, []string{"--workers=1", "--object-selector=note=b"}, flagsOfSecond(s))
	s.Second.Scope = ""
	assert.Equal(t, []string{"--workers=1"}, flagsOfSecond(s))
	assert.Equal(t, []string{"--workers=1", "--object-selector=note!=b"}, s.Flags)
}

func TestReplicasAfterThoseOfTheFirstInstallationAreOfTheSecond(t *testing.T) {
	t.Parallel()
	s := &simulation{history: history.History{Setup: history.Setup{Replicas: 2, Second: &history.Second{Replicas: 1}}}}
	assert.False(t, s.isSecond("replica-1.3"), "slot 1 is of the first installation")
	assert.True(t, s.isSecond("replica-2"), "slot 2 is of the second installation")
	assert.True(t, s.isSecond("replica-2.1"), "slot 2 is of the second installation, also after a restart")
	assert.False(t, s.isSecond("user"), "a user is no replica")
	s.history.Setup.Second = nil
	assert.False(t, s.isSecond("replica-2"), "there is no second installation")
}

func TestWithoutASecondInstallationThereAreNoSides(t *testing.T) {
	t.Parallel()
	sides, err := sidesOf(history.Setup{})
	require.NoError(t, err)
	assert.Nil(t, sides)
	_, err = sidesOf(history.Setup{Second: &history.Second{Replicas: 1, Scope: "--object-selector=!!"}})
	assert.Error(t, err)
}

// The change comes while the second installation looks after the workload, with the record of the first one.
func TestWorkloadChangesSides(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const cart = "deployments/shop/cart"
	h := history.History{Form: history.Form, Seed: 1, Setup: history.Setup{
		Replicas: 1, Flags: []string{"--object-selector=note!=b"}, Second: &history.Second{Replicas: 1, Scope: "--object-selector=note=b"},
	}, Steps: []history.Step{
		{Do: act.LabelWorkload, On: cart, With: map[string]string{"value": "b"}},
		{Do: editConfig, On: "configmaps/shop/app", Wait: history.Duration(time.Minute), With: map[string]string{"key": "app.properties", "value": "x"}},
	}}
	require.NoError(t, Catalogue().Check(h))
	require.NoError(t, checkInstallation(h))
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { p.end() })
	o, err := p.do(job{History: h, Verbose: true})
	require.NoError(t, err)
	assert.Empty(t, o.Violations)
	reloaded := func(client, workload string) (n int) {
		for _, line := range o.Journal {
			if strings.Contains(line, client+" log:") && strings.Contains(line, `"reloaded the workload"`) && strings.Contains(line, workload) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 1, reloaded("replica-1.1", "Deployment shop/cart"), "the second installation restarts what it selects")
	assert.Zero(t, reloaded("replica-0.1", "Deployment shop/cart"))
	assert.Equal(t, 1, reloaded("replica-0.1", "DaemonSet shop/agent"), "the first one restarts the others")
	assert.Positive(t, o.Judged["sides judged"])
}

func TestSituationsBringASecondInstallation(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]string{"elsewhere": unread, "sides": "--object-selector=note=b"} {
		h := Draw(3, DrawOptions{Steps: 40, Faults: true, Situation: name})
		require.NotNil(t, h.Setup.Second)
		assert.Equal(t, scope, h.Setup.Second.Scope)
	}
	n := 0
	for seed := range uint64(200) {
		if h := Draw(seed, DrawOptions{Steps: 60, Faults: true}); h.Setup.Second != nil {
			n++
		}
	}
	assert.Positive(t, n, "some histories without a finale end with one of them")
}
