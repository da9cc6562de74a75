package act

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// dry is the parameter of acts that users also carry out as a server-side dry run.
	dry = "dry"
	// dryOnly is its value for "kubectl apply --dry-run=server": nothing is stored.
	dryOnly = "only"
	// dryFirst is its value for "kubectl diff" before the write itself.
	dryFirst = "first"
)

// mayBeDry reports whether an act takes the parameter dry: it is one write of a workload, which calls the webhook.
func mayBeDry(name string) bool {
	switch name {
	case "apply-workload", "replace-workload", "ssa-workload", "release", "release-broken", "set-env-template", "restart", "undo",
		"edit-lists", "verified-reload", "ssa-verified-reload", "verified-reload-wrong", copyWorkload, CreateJob, EditPodReferences:
		return true
	}
	return false
}

// withDryRuns gives acts the parameter dry. They never draw it: DryRuns does, from a random stream of its own.
func withDryRuns(acts []act) []act {
	for i := range acts {
		if a := &acts[i]; mayBeDry(a.name) {
			a.with = append(slices.Clone(a.with), optional(dry, omit, isOneOf(dryOnly, dryFirst), never))
			a.words += "[ (server-side dry run: {" + dry + "})]"
			a.do = dryRunning(a.do)
		}
	}
	return acts
}

func never(*rand.Rand, world.Key) string { return omit }

// dryRunning carries out an act as the parameter dry says. A dry run that is rejected does not keep the user from the write.
func dryRunning(do func(context.Context, client, step) error) func(context.Context, client, step) error {
	return func(ctx context.Context, c client, s step) error {
		if !s.has(dry) {
			return do(ctx, c, s)
		}
		err := do(ctx, client{dryRun(c)}, s)
		if s.text(dry) == dryOnly {
			return err
		}
		if _, rejected := errors.AsType[*RejectedError](err); err != nil && !rejected && !errors.Is(err, ErrSkipped) {
			return err
		}
		return do(ctx, c, s)
	}
}

// dryRun makes each write a dry run.
type dryRun struct{ api API }

func (d dryRun) Do(ctx context.Context, r Request) (Response, error) {
	if r.Method != http.MethodGet {
		separator := "?"
		if strings.Contains(r.Path, "?") {
			separator = "&"
		}
		r.Path += separator + "dryRun=All"
	}
	return d.api.Do(ctx, r)
}

// dryRunOf is how many steps that may be dry runs there are for each that DryRuns makes one.
const dryRunOf = 3

// DryRuns returns the steps, with some of them as a dry run, or with one before the write.
func DryRuns(r *rand.Rand, steps []history.Step) []history.Step {
	drawn := slices.Clone(steps)
	for i := range drawn {
		s := &drawn[i]
		if !mayBeDry(s.Do) || r.IntN(dryRunOf) > 0 {
			continue
		}
		s.With = maps.Clone(s.With)
		if s.With == nil {
			s.With = map[string]string{}
		}
		s.With[dry] = pick(dryOnly, dryFirst)(r, world.Key{})
	}
	return drawn
}
