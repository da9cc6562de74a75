package act

import (
	"context"
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The acts about restarts of a Rollout without a new template. They have no weight: simulate draws them from a random stream of its own.
const (
	// AskRestart is the act by which a Rollout asks for it with each reload.
	AskRestart = "ask-rollout-restart"
	// RestartRollout is the act of a user who restarts it once.
	RestartRollout = "restart-rollout"
)

const rolloutStrategy = otherDomain + "rollout-strategy"

func rolloutRestartActs() []act {
	strategies := pick("restart", "restart", "restart", "restart", "rollout", "absent")
	return []act{
		{
			name: AskRestart, on: onRollout(),
			with: []parameter{
				required("to", isOneOf("restart", "rollout", "absent"), strategies),
				optional("asks", omit, isOneOf("auto", "named"), seldom(4, pick("auto", "named"))),
			},
			words: "user sets the rollout strategy of {on} for Reloader to {to}[, and annotates it for Reloader: {asks}]",
			do:    askRestart,
		},
		{
			name: RestartRollout, on: onRollout(),
			with:  []parameter{optional("in", "0s", isOneOf("0s", "10s", "1m", "10h"), pick("0s", "0s", "0s", "10s", "1m"))},
			words: "user restarts {on} in {in}",
			do: func(ctx context.Context, c client, s step) error {
				// It is "kubectl argo rollouts restart".
				at := time.Now().Add(s.pause("in")).UTC().Format(time.RFC3339)
				return c.merge(ctx, s.key, "kubectl-argo-rollouts", world.Object{"spec": world.Object{"restartAt": at}})
			},
		},
	}
}

// askRestart is "kubectl annotate". Where it asks for something of the second dialect, the lists are removed.
func askRestart(ctx context.Context, c client, s step) error {
	annotations := world.Object{rolloutStrategy: s.text("to")}
	if s.text("to") == "absent" {
		annotations[rolloutStrategy] = nil
	}
	if s.has("asks") {
		wanted, err := wish(s.key, s.text("asks"))
		if err != nil {
			return err
		}
		for _, key := range append(otherKeys(), listOfConfigMaps, listOfSecrets) {
			annotations[key] = nil
		}
		maps.Copy(annotations, wanted)
	}
	return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", annotations))
}
