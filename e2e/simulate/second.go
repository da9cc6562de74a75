package simulate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// A second installation has replicas, a lease, a webhook and flags of its own. It is in the namespace of the first one, so that both have
// the same digest key.

// secondName is the name of the second installation, and of its lease.
const secondName = "second"

// names are the flags by which the second installation has another name than the first one.
func (at *slot) names() []string {
	if at.second {
		return []string{"--installation-name=" + secondName}
	}
	return nil
}

// isSecond reports whether a replica, or one of its processes, is of the second installation.
func (s *simulation) isSecond(client string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(slotOf(client), replicaPrefix))
	return err == nil && s.history.Setup.Second != nil && n >= max(s.history.Setup.Replicas, 1)
}

// flagsOf returns the flags of the installation of a slot.
func (s *simulation) flagsOf(at *slot) []string {
	if at.second {
		return flagsOfSecond(s.history.Setup)
	}
	return s.flags
}

// ownWebhooks returns the webhooks of our installations in the order in which they are called.
func (s *simulation) ownWebhooks() ([]apiserver.Webhook, error) {
	first, err := s.ownWebhook(false, s.flags)
	second := s.history.Setup.Second
	if err != nil || second == nil {
		return []apiserver.Webhook{first}, err
	}
	other, err := s.ownWebhook(true, flagsOfSecond(s.history.Setup))
	if second.Before {
		return []apiserver.Webhook{other, first}, err
	}
	return []apiserver.Webhook{first, other}, err
}

// sidesOf returns which of two installations select a workload; nil where there is one installation.
func sidesOf(s history.Setup) (func(namespace string, namespaceLabels, objectLabels map[string]string) oracle.Sides, error) {
	if s.Second == nil {
		return nil, nil
	}
	first, err := scopeOf(s.Flags)
	if err != nil {
		return nil, err
	}
	second, err := scopeOf(flagsOfSecond(s))
	return func(namespace string, namespaceLabels, objectLabels map[string]string) oracle.Sides {
		return oracle.Sides{
			First:  first.InScope(namespace, namespaceLabels, objectLabels),
			Second: second.InScope(namespace, namespaceLabels, objectLabels),
		}
	}, err
}

// join adds the second installation of a theme to a history.
func (t theme) join(seed uint64, s *history.Setup) {
	if t.second != nil && s.Second == nil && !s.Graph {
		t.second(rand.New(rand.NewPCG(seed, 23)), s)
	}
}

// divided is a second installation, where selectors divide the workloads between both.
func divided(r *rand.Rand, s *history.Setup) {
	all := [][2]string{
		{"--object-selector=note!=b", "--object-selector=note=b"},
		{"--object-selector=note!=b", "--object-selector=note=b"},
		{"--object-selector=version!=3", "--object-selector=version=3"},
		{"--namespace-selector=team=shop", "--namespace-selector=team notin (shop)"},
	}
	beside(r, s, all[r.IntN(len(all))])
}

// unread is the scope of a second installation that tracks nothing of workloads with annotations of Reloader only.
const unread = dialectFlag + "=false"

// shared is a second installation that selects workloads of the first one: all of them or some.
func shared(r *rand.Rand, s *history.Setup) {
	all := [][2]string{
		{"", ""},
		{"", "--object-selector=note!=b"},
		{"--object-selector=note!=b", "--object-selector=note!=c"},
		{"--namespace-selector=team=shop", ""},
		{"", unread},
		{"", unread},
	}
	one := all[r.IntN(len(all))]
	if beside(r, s, one); one[1] == unread {
		s.Flags, s.Second.Scope = withoutFlags(s.Flags, dialectFlag, autoFlag), unread
	}
}

// beside adds a second installation with the flags of the first one, but for the scope.
func beside(r *rand.Rand, s *history.Setup, scopes [2]string) {
	s.Second = &history.Second{Replicas: 1 + r.IntN(2), Before: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		slices.Reverse(scopes[:])
	}
	s.Flags, s.Second.Scope = withSelection(s.Flags, scopes[0]), scopes[1]
}

// withSelection replaces the flags that select workloads by one; an empty one selects all.
func withSelection(flags []string, one string) []string {
	others := withoutFlags(flags, "--namespaces", "--namespaces-to-ignore", "--namespace-selector", "--object-selector")
	if one == "" {
		return others
	}
	return append(others, one)
}

// withoutFlags leaves flags of some names out.
func withoutFlags(flags []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return slices.Contains(names, flagName(flag)) })
}

// flagsOfSecond returns the flags of the second installation; none where there is one installation.
func flagsOfSecond(s history.Setup) []string {
	if s.Second == nil {
		return nil
	}
	return withSelection(s.Flags, s.Second.Scope)
}
