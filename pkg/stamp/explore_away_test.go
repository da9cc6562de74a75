package stamp

import (
	"maps"
	"testing"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// unjudged says that writes land as they are: the webhook is away, or there is none.
func (c *cell) unjudged() bool { return c.away || c.direct }

// writeDirectly is what the loop writes where no webhook has taken its request: what the webhook would have stored.
func (c *cell) writeDirectly() {
	before := c.view(c.same())
	before.Managed = before.Managed.Without(Dummy)
	after := before
	after.Managed = maps.Clone(before.Managed)
	after.Managed[Dummy] = digest.Bind(c.hash(), c.generation)
	req := Write{Old: before, New: after}
	result := Choose(req).Apply(req, c.inputs())
	if result.Reject != nil {
		c.fail("the rules reject a direct write: %s", result.Reject.Message)
		return
	}
	w := c.same()
	w.managed = result.Managed
	c.commit(w)
}

// doubt notes whether the managed annotations say what the pods of the current revision were started with. A write that
// no webhook has judged may start pods with a configuration that is not the recorded one, or take the managed
// annotations away: known limits. As soon as the loop has brought both together, every promise holds again.
func (c *cell) doubt() {
	if !c.unjudged() && !c.revisions[c.current].doubtful {
		return
	}
	r := c.revisions[c.current]
	view := c.view(c.same())
	then := *c
	then.contents = r.started
	in := policy.Input{
		Namespace: "test", Intent: view.Intent, Required: map[reference.Ref]bool{}, Known: view.Known(),
		Current: then.inputs().States, Ring: rings[c.ring],
	}
	verdict := policy.Assess(in).Verdict
	_, owned := rings[c.ring].Key(keyOf(in.Known.Hash))
	rebuilt := in.Known.Hash != "" && owned && c.required == [2]bool{} // a hash alone holds nothing for required objects
	doubtful := len(view.Intent.Tracked) > 0 && (verdict.Action == policy.Reload || len(verdict.Adopt) > 0 && !rebuilt)
	c.revisions[c.current].doubtful = doubtful
}

func keyOf(hash string) digest.KeyID {
	id, _ := digest.KeyOf(hash)
	return id
}

// actsAway are the acts of a cluster whose webhook comes and goes.
func actsAway() []act {
	return append(acts(), act{"the webhook goes or comes", func(c *cell) bool {
		c.away = !c.away
		return true
	}})
}

// What is promised while the webhook is away: no write is rejected, the loop restarts what is due and nothing else, and
// from the moment the webhook is back all that is promised with it.
func TestPromisesHoldWhileTheWebhookIsAway(t *testing.T) {
	t.Parallel()
	for name, start := range startedCells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start.away = true
			explore(t, start, actsAway(), *depth)
		})
	}
}

func TestPromisesHoldInDirectMode(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]*cell{
		"Deployment":            startedCell(true, false, false),
		"StatefulSet":           startedCell(false, false, false),
		"required, Deployment":  startedCell(true, false, true),
		"required, StatefulSet": startedCell(false, false, true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start.direct = true
			explore(t, start, acts(), *depth)
		})
	}
}
