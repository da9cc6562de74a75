package simulate

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// tracked is a workload and an object that it lists.
type tracked struct{ workload, config string }

// resource is the plural name of the workload's kind.
func (t tracked) resource() string {
	resource, _, _ := strings.Cut(t.workload, "/")
	return resource
}

// edit is a step that changes the object.
func (t tracked) edit(value string, wait time.Duration) history.Step {
	return history.Step{
		Do: editConfig, On: t.config, Wait: history.Duration(wait), With: map[string]string{"key": t.key(), "value": value},
	}
}

// key is a data key of the object, the first in order.
func (t tracked) key() string {
	return map[string]string{
		"configmaps/shop/app": "app.properties", "configmaps/shop/extra": "flags", "secrets/shop/db": "password", "secrets/shop/tls": "tls.crt",
		act.LateConfig: "greeting",
	}[t.config]
}

// anyTracked draws a pair.
func anyTracked(r *rand.Rand) tracked {
	all := []tracked{
		{"deployments/shop/cart", "configmaps/shop/app"},
		{"deployments/shop/web", "secrets/shop/db"},
		{"statefulsets/shop/store", "configmaps/shop/extra"},
		{"daemonsets/shop/agent", "configmaps/shop/app"},
	}
	return all[r.IntN(len(all))]
}

// deletionUnseen is one deletion, which restarts a workload, while its watch is blind: mostly in the way after which nothing is
// left to list.
func deletionUnseen(r *rand.Rand) situation {
	all := []tracked{ // the pods do not require these objects
		{"deployments/shop/web", "configmaps/shop/extra"},
		{"deployments/shop/web", "configmaps/shop/app"},
		{"deployments/shop/web", "secrets/shop/db"},
		{"deployments/shop/cart", "configmaps/shop/extra"},
		{"statefulsets/shop/store", "secrets/shop/tls"},
		{"daemonsets/shop/agent", act.LateConfig},
	}
	p := all[r.IntN(len(all))]
	resource, _, _ := strings.Cut(p.config, "/")
	fault := blindness(r, resource)
	if r.IntN(4) > 0 {
		fault.Do, fault.On = "fold-watches", resource
	}
	deletion := history.Step{Do: act.DeleteConfig, On: p.config, Wait: history.Duration(time.Duration(r.IntN(20)) * 100 * time.Millisecond)}
	return situation{workload: p.workload, steps: []history.Step{fault, deletion}}
}

// requestRevived is a request for a reload that is stored while the webhook is away, copied to a ReplicaSet, and brought back by an
// undo. Where the API server is slow, the controllers copy the request before the program writes directly.
func requestRevived(r *rand.Rand) situation {
	p := tracked{pick(r, "deployments/shop/cart", "deployments/shop/web"), "configmaps/shop/app"}
	const away = "12s"
	steps := []history.Step{{Do: "webhook-away", Wait: history.Duration(betweenSituations), With: map[string]string{"for": away}}}
	if r.IntN(4) > 0 {
		steps = append(steps, history.Step{Do: "api-slow", With: map[string]string{"for": away, "by": "4s"}})
	}
	steps = append(steps,
		p.edit("revived-1", time.Second), p.edit("revived-2", betweenSituations),
		history.Step{Do: "undo", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"back": pick(r, "1", "2", "2")}})
	return situation{workload: p.workload, steps: steps}
}

// writesRefused is a change whose reload is refused for some seconds. Nothing happens afterwards that would have the program look
// again.
func writesRefused(r *rand.Rand) situation {
	p := anyTracked(r)
	return situation{workload: p.workload, steps: []history.Step{
		{Do: "api-errors", Wait: history.Duration(betweenSituations), With: map[string]string{
			"for": "8s", "percent": "100", "resource": p.resource(), "code": pick(r, "409", "409", "429", "500", "503"),
		}},
		p.edit("refused", 500*time.Millisecond),
	}}
}

// writesHang is a change whose reload never has an answer. In half of them the writes hang so long that other kinds of workloads, which wait
// for a slot meanwhile, must be reloaded.
func writesHang(r *rand.Rand) situation {
	p := anyTracked(r)
	return situation{workload: p.workload, rest: untilPrompt, steps: []history.Step{
		{Do: "hang-writes", On: p.resource(), Wait: history.Duration(betweenSituations), With: map[string]string{"for": pick(r, "8s", "45s")}},
		p.edit("hung", 500*time.Millisecond),
	}}
}

// leaderKilled is a change right after one of two replicas was killed, mostly the one that leads. It does not come back: the other one
// has to wait until the lease has run out, and no longer.
func leaderKilled(r *rand.Rand) situation {
	p := anyTracked(r)
	return situation{
		workload: p.workload, rest: untilPrompt,
		setup: func(setup *history.Setup) { setup.Replicas = 2 },
		steps: []history.Step{
			{Do: "kill", On: pick(r, "replica-0", "replica-0", "replica-1"), Wait: history.Duration(betweenSituations), With: map[string]string{"for": "2m"}},
			p.edit("led-anew", time.Second),
		},
	}
}

// published is a custom resource whose own fields change, and change back: the digest that is published in it is one of what it refers
// to. It is judged in histories without faults.
func published(*rand.Rand) situation {
	const edge = "proxies/shop/edge"
	var steps []history.Step
	for _, referent := range []string{"filters/shop/auth", "filters/shop/limit", edge} {
		mode := map[string]string{"mode": "open"}
		steps = append(steps, history.Step{Do: "create-referent", On: referent, With: mode}, history.Step{Do: "edit-referent", On: referent, With: mode})
	}
	steps = append(steps, history.Step{Do: "edit-references", On: edge, With: map[string]string{"filters": "auth,limit"}})
	for _, mode := range []string{"fast", "slow", "fast"} {
		steps = append(steps, history.Step{
			Do: "edit-referent", On: edge, Wait: history.Duration(betweenSituations), With: map[string]string{"mode": mode},
		})
	}
	return situation{workload: "deployments/shop/cart", undisturbed: true, steps: steps}
}

// constantChange is an object that is never quiet for the settle time, for much longer than settle-max.
func constantChange(r *rand.Rand) situation {
	return hammered(anyTracked(r), "150", "400ms")
}

// constantConflict is an object that changes faster than its state can be read and a reload be asked for.
func constantConflict(r *rand.Rand) situation { return conflicting(anyTracked(r)) }

// constantPasses is an object that changes between the two passes of our webhook: another one, after ours, changes what ours has
// stamped, so that the API server calls ours again for the same request. A write that takes long by chance would leave both passes
// with the same content.
func constantPasses(r *rand.Rand) situation {
	all := []tracked{
		{"deployments/shop/cart", "configmaps/shop/app"},
		{"deployments/shop/web", "configmaps/shop/app"},
		{"deployments/shop/web", "secrets/shop/db"},
	}
	s := conflicting(all[r.IntN(len(all))])
	s.undisturbed = true
	conflict := s.setup
	s.setup = func(setup *history.Setup) {
		conflict(setup)
		setup.OtherWebhooks = "checksum"
	}
	return s
}

// conflicting is an object that is written again before a request of the program has its answer.
func conflicting(p tracked) situation {
	s := hammered(p, "800", "25ms")
	s.setup = func(setup *history.Setup) {
		setup.Latency = history.Duration(25 * time.Millisecond)
		setup.Flags = append(selection(setup.Flags), "--settle=0s")
	}
	return s
}

// hammered is an object that is written some times.
func hammered(p tracked, n, every string) situation {
	return situation{workload: p.workload, rest: untilPrompt, steps: []history.Step{{
		Do: "hammer-config", On: p.config, Wait: history.Duration(betweenSituations), With: map[string]string{"key": p.key(), "n": n, "every": every},
	}}}
}

// keyRotated is a write that changes no content after the digest key was rotated: what is known is under the older key.
func keyRotated(r *rand.Rand) situation {
	if r.IntN(2) == 0 {
		return keyRotatedUnseen(r)
	}
	p := anyTracked(r)
	return situation{workload: p.workload, steps: []history.Step{
		{Do: "rotate-key", On: keySecret, Wait: history.Duration(betweenSituations), With: map[string]string{"seed": "77"}},
		{Do: "label-config", On: p.config, Wait: history.Duration(betweenSituations), With: map[string]string{"value": pick(r, "x", "y")}},
	}}
}

// keyRotatedUnseen is a rotation of the digest key that only the replica sees that starts again: the others have an old ring when they meet what
// is stamped under the new key.
func keyRotatedUnseen(r *rand.Rand) situation {
	p := anyTracked(r)
	release := func(value, version string) history.Step {
		return history.Step{Do: "config-and-release", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{
			"config": p.config, "gap": "100ms", "key": p.key(), "value": value, "version": version,
		}}
	}
	return situation{workload: p.workload, steps: []history.Step{
		{Do: "hold-watches", On: "secrets", Wait: history.Duration(betweenSituations), With: map[string]string{"for": "110s"}},
		{Do: "rotate-key", On: keySecret, Wait: history.Duration(time.Second), With: map[string]string{"seed": "77"}},
		{Do: "stop", On: "replica-0", Wait: history.Duration(time.Second), With: map[string]string{"for": "1s"}},
		p.edit("rotated", betweenSituations),
		release("released-1", "4"),
		release("released-2", "5"),
	}, setup: func(s *history.Setup) { s.Replicas = 3 }}
}

// keyLost is a change long after the digest key was lost: by then the program has found out anew with what the pods run.
func keyLost(r *rand.Rand) situation {
	p := anyTracked(r)
	loss := history.Step{Do: "delete-key-secret", On: keySecret, Wait: history.Duration(betweenSituations)}
	if r.IntN(3) > 0 {
		loss.Do, loss.With = "lose-key", map[string]string{"seed": "78"}
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: []history.Step{loss, p.edit("after-loss", 170*time.Second)}}
}

// fieldMoved is a key that moves to the other field of a ConfigMap, with the same bytes: pods that read it from their environment
// lose it.
func fieldMoved(r *rand.Rand) situation {
	p := tracked{pick(r, "deployments/shop/cart", "daemonsets/shop/agent"), "configmaps/shop/app"}
	return situation{workload: p.workload, steps: []history.Step{{
		Do: "edit-config-binary", On: p.config, Wait: history.Duration(betweenSituations), With: map[string]string{"key": p.key()},
	}}}
}

// releasedUnstamped is a workload that was created while nothing answered for the webhook, so that its template has no hash: a release
// that changes no configuration and cannot start, and an undo of it.
func releasedUnstamped(r *rand.Rand) situation {
	p := anyTracked(r)
	return situation{workload: p.workload, steps: []history.Step{
		{Do: "webhook-away", Wait: history.Duration(betweenSituations), With: map[string]string{"for": "8s"}},
		recreated(p.workload, ""),
		{Do: "release-broken", On: p.workload, Wait: history.Duration(untilPrompt)},
		{Do: "undo", On: p.workload, Wait: history.Duration(betweenSituations), With: map[string]string{"back": "1"}},
		p.edit("unstamped", betweenSituations),
	}}
}

// relistedUnseen is an edit of the lists while nothing answers for the webhook: what is listed is adopted then, without a restart.
func relistedUnseen(r *rand.Rand) situation {
	p := anyTracked(r)
	return situation{workload: p.workload, steps: []history.Step{
		{Do: "webhook-away", Wait: history.Duration(betweenSituations), With: map[string]string{"for": "8s"}},
		{Do: "edit-lists", On: p.workload, Wait: history.Duration(2 * time.Second), With: map[string]string{
			"configmaps": "app,extra,late", "secrets": pick(r, "tls", "db,tls"),
		}},
		p.edit("relisted", untilPrompt),
	}}
}

// keySecret has the digest keys.
const keySecret = "secrets/" + act.System + "/" + act.KeySecret
