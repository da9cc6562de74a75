package simulate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// changeFlag is an upgrade of the installation by which a flag has another value.
const changeFlag = "change-flag"

// flagValues are values that flags may change to.
func flagValues() []string {
	return []string{
		"--hash=revision", "--hash=content",
		strategyFlag + "env-vars", strategyFlag + "annotations", strategyFlag + "config-hash",
		"--missing-required=reload", "--missing-required=hold",
		deleteFlag, deleteFlag + "=false", createFlag, createFlag + "=false", autoFlag, autoFlag + "=false",
	}
}

// flagsOf is how many histories there are for each in which a flag changes.
const flagsOf = 4

// changedFlags replaces some faults by upgrades with another value of a flag; in most histories none. It shifts no other choice of the
// seed.
func changedFlags(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
	return insteadOfFaults(rand.New(rand.NewPCG(seed, 18)), flagsOf, c, steps, changeFlag)
}

// beginChange restarts all replicas, one after the other. Until the last of the old ones has ended, a restart may be by either value.
func beginChange(s *simulation, step history.Step) func() {
	if s.history.Setup.Second != nil {
		return nil // both have the same rules
	}
	values := splitFlags(step.With["flags"])
	s.flags = withValues(s.flags, values)
	policy := s.policy()
	policy.Clear = false
	s.oracle.ask(func(o *oracle.Oracle) { o.Repolicy(time.Now(), policy) })
	if slices.ContainsFunc(values, func(value string) bool { return flagName(value) == autoFlag }) {
		s.disagree()
	}
	s.roll(func(flags []string) []string { return withValues(flags, values) })
	return s.agree
}

// withValues replaces the values of some flags.
func withValues(flags, values []string) []string {
	return append(slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return slices.ContainsFunc(values, func(value string) bool { return flagName(value) == flagName(flag) })
	}), values...)
}

// policy is that of the installation.
func (s *simulation) policy() oracle.Policy {
	rules, err := rulesOf(s.flags)
	if err != nil {
		s.broken = err
	}
	return oracle.Policy{
		AutoReloadAll: rules.AutoReloadAll, ReloadOnCreate: rules.ReloadOnCreate, ReloadOnDelete: rules.ReloadOnDelete,
		ReloadMissingRequired: rules.ReloadMissingRequired, Revision: rules.Revision, Strategy: rules.Strategy, Clear: true,
	}
}
