package stamp

import (
	"maps"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
)

// step is one reconciliation of the loop. It reports whether there was anything to do.
func (w *world) step() bool {
	view := w.view()
	if view.Excluded || !view.Intent.Asked {
		return false
	}
	in := policy.Input{
		Namespace: "test", Intent: view.Intent, Required: view.Required, Known: view.Known(), Ring: w.ring,
		Current: w.states(view.Intent.Refs()), ReloadMissingRequired: w.reloadMissing,
	}
	for ref, state := range in.Current {
		state.Entries = nil
		in.Current[ref] = state
	}
	maps.Copy(in.Current, w.states(policy.Assess(in).Reads))
	a := policy.Assess(in)
	switch {
	case a.Verdict.Action == policy.Reload:
		w.poke()
		return true
	case a.Verdict.Action == policy.Hold, in.Known.Hash == "" && w.foreign[a.Verdict.Foreign]:
		return false
	case len(a.Verdict.Adopt) > 0:
		if in.Known.Hash == "" && a.Verdict.Foreign != "" {
			w.foreign[a.Verdict.Foreign] = true
		}
		rec, err := a.Adopt(in, view.Managed[Hash])
		require.NoError(w.t, err)
		text, fits := rec.Text(view.RecordBudget())
		if fits {
			w.write(func(raw map[string]any) { w.setManaged(raw, Record, text) })
		}
		return fits
	}
	return false
}

// poke writes the dummy, and what the webhook would have written where none answers.
func (w *world) poke() {
	dummy := w.bound(w.hash())
	rejection := w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, dummy) })
	require.Nil(w.t, rejection)
	if _, stored := w.managed()[Dummy]; !stored {
		return
	}
	dummy = w.bound(w.hash()) // storing it has raised the generation
	before, after := w.view(), w.view()
	before.Managed = before.Managed.Without(Dummy)
	after.Managed = maps.Clone(before.Managed)
	after.Managed[Dummy] = dummy
	req := Write{Old: before, New: after}
	result := Choose(req).Apply(req, w.inputs(after.Intent.Refs()))
	ops := append(w.reader.Guard(w.object()), w.reader.Operations(w.object(), result.Managed)...)
	require.Nil(w.t, w.store(patch(w.t, w.stored, ops)))
}

// quiesce runs the loop until it has nothing to do.
func (w *world) quiesce() {
	w.t.Helper()
	for range 6 {
		if !w.step() {
			return
		}
	}
	require.Fail(w.t, "the loop does not come to rest", "rule %s, managed: %v, configs %v, warnings %v, ring %v", w.result.Rule, w.managed(), w.configs, w.result.Warnings, w.ring)
}
