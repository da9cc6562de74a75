package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
)

// The annotations, as the documentation names them.
const (
	prefix     = "pod-reloader.cs.sap.com/"
	configHash = prefix + "config-hash"
	lastReload = `jsonpath={.metadata.annotations.pod-reloader\.cs\.sap\.com/last-reload}{"\n"}`
)

// cause is what the first step changes, and so what explanations must name.
const cause = "configmap/features"

// step is a piece of the demo. It promises its rows before it does anything, so that the table is complete in any case.
type step struct {
	title string
	play  func(*demo, context.Context) error
}

// steps are played in this order. The first two belong together: after a reload pod-reloader lets a workload rest for
// 5 s, and a verified reload is how a client goes past that. The last one is the barrier for all: see [demo.twice].
func steps() []step {
	return []step{
		{"A change is one rollout, and it is explained", (*demo).change},
		{"A client proves what it has seen, and gets its reload at once", (*demo).verified},
		{"What changes below a custom resource is one rollout", (*demo).deep},
		{"Ten objects at once are one rollout", (*demo).ten},
		{"A release, configuration and image, is one rollout", (*demo).release},
		{"What changes no configuration restarts nothing", (*demo).nothing},
		{"Manifests for Stakater's Reloader work as they are", (*demo).dialect},
		{"A rollout undo keeps the configuration", (*demo).undo},
		{"What changes while pod-reloader is down is picked up", (*demo).down},
		{"A custom resource that is not valid restarts nothing", (*demo).held},
		{"Why?", (*demo).why},
		{"Two reloads of a workload are seconds apart", (*demo).twice},
	}
}

// kubectl begins a command in the demo's namespace.
func kubectl(args ...string) []string {
	return append([]string{"kubectl", "-n", namespace}, args...)
}

// apply is on the server's side: kubectl's own way spends up to a second of CPU on each object, and then ten objects are not
// changed at once.
func apply(path string) []string {
	return []string{"kubectl", "apply", "--server-side", "-f", path}
}

// set changes one key of a ConfigMap or, with the field stringData, of a Secret.
func set(object, field, key, value string) []string {
	return kubectl("patch", object, "--type=merge", "-p", fmt.Sprintf(`{%q:{%q:%q}}`, field, key, value))
}

// change: one ConfigMap, three kinds of workloads, three ways to use it.
func (d *demo) change(ctx context.Context) error {
	once := d.card.Promise("a ConfigMap of three workloads changes", "1 rollout each")
	named := d.card.Promise("annotation and Event say why", "name "+cause)
	windows, err := d.expect(ctx, once, 1, cart, ledger, agent)
	if err != nil {
		return err
	}
	d.narrator.Say("cart uses ConfigMap features by env, ledger by a volume, agent by envFrom.")
	r, err := d.shell.run(ctx, set("configmap/features", "data", "CHECKOUT", "new")...)
	if err != nil {
		return err
	}
	if err := d.await(ctx, r.ended, windows...); err != nil {
		return err
	}
	if err := d.awaitEvents(ctx, len(windows)); err != nil {
		return err
	}
	events, err := d.shell.run(ctx, kubectl("get", "events", "--field-selector=reason=Reloaded",
		"-o", "custom-columns-file=e2e/demo/output/events.columns")...)
	if err != nil {
		return err
	}
	annotation, err := d.shell.run(ctx, kubectl("get", "deployment/cart", "-o", lastReload)...)
	if err != nil {
		return err
	}
	naming := strings.Count(events.stdout, cause)
	named.Judge(scorecard.Named(cause, scorecard.Source{Name: "annotation", Text: annotation.stdout}).
		And(naming == len(windows), "in each Event", fmt.Sprintf("in %d Events of %d", naming, len(windows))))
	return nil
}

// ten: a burst.
func (d *demo) ten(ctx context.Context) error {
	once := d.card.Promise("ten objects of a workload change at once", "1 rollout")
	windows, err := d.expect(ctx, once, 1, catalog)
	if err != nil {
		return err
	}
	objects, err := d.open(ctx, catalogConfiguration()...)
	if err != nil {
		return err
	}
	r, err := d.shell.brief(ctx, apply("e2e/demo/changes/ten.yaml")...)
	if err != nil {
		return err
	}
	if err := d.sync(ctx); err != nil {
		return err
	}
	d.narrator.Say("%s", d.burst(objects))
	return d.await(ctx, r.ended, windows...)
}

// release: the configuration first, the workload within the settle time.
func (d *demo) release(ctx context.Context) error {
	once := d.card.Promise("a release: configuration, then image", "1 rollout with both")
	windows, err := d.open(ctx, web)
	if err != nil {
		return err
	}
	d.atTheEnd(once, func() scorecard.Finding {
		both := false
		for _, c := range d.changes(windows[0]) {
			both = both || c.ImageBefore != c.ImageAfter && c.AnnotationsBefore[configHash] != c.AnnotationsAfter[configHash]
		}
		return scorecard.Rollouts(1, d.counts(windows)...).And(both, "both in one", "not both in one")
	})
	r, err := d.shell.run(ctx, apply("e2e/demo/changes/release.yaml")...)
	if err != nil {
		return err
	}
	return d.await(ctx, r.ended, windows...)
}

// nothing: edits that touch no content. What must not happen is shown by what must: a later change of another workload.
func (d *demo) nothing(ctx context.Context) error {
	edited := d.card.Promise("a label edit, a scale, a PUT without our annotations", "0 rollouts")
	created := d.card.Promise("delete, create again with equal content", "0 rollouts")
	first, err := d.expect(ctx, edited, 0, search)
	if err != nil {
		return err
	}
	for _, argv := range [][]string{
		kubectl("label", "configmap/search", "deployment/search", "team=blue"),
		kubectl("scale", "deployment/search", "--replicas=5"),
		// kubectl replace reads and writes: the controller must be done with its status, or the write may be a conflict.
		kubectl("rollout", "status", "deployment/search", "--timeout=60s"),
		{"kubectl", "replace", "-f", "e2e/demo/manifests/search.yaml"},
	} {
		if _, err := d.shell.run(ctx, argv...); err != nil {
			return err
		}
	}
	second, err := d.expect(ctx, created, 0, search)
	if err != nil {
		return err
	}
	if _, err := d.shell.run(ctx, kubectl("delete", "configmap/search")...); err != nil {
		return err
	}
	if _, err := d.shell.run(ctx, apply("e2e/demo/manifests/search-config.yaml")...); err != nil {
		return err
	}
	d.narrator.Say("To be sure, a change after all that, which must act:")
	beat, err := d.open(ctx, heartbeat)
	if err != nil {
		return err
	}
	if err := d.beat(ctx, beat[0], 1); err != nil {
		return err
	}
	d.narrator.Seen("so far", fmt.Sprintf("%d rollouts of Deployment search", len(d.changes(first[0]))+len(d.changes(second[0]))))
	return nil
}

// beat changes the heartbeat's configuration and waits for the n-th rollout in its window.
func (d *demo) beat(ctx context.Context, of window, n int) error {
	r, err := d.shell.run(ctx, set("configmap/heartbeat", "data", "BEAT", fmt.Sprintf("%d-%d", of.n, n))...)
	if err != nil {
		return err
	}
	return d.awaitNth(ctx, r.ended, n, of)
}

// undo: across a reload, where there is nothing to undo, and across a release, whose image comes back.
func (d *demo) undo(ctx context.Context) error {
	reload := d.card.Promise("rollout undo of a reload", "0 rollouts")
	released := d.card.Promise("rollout undo of a release", "1 rollout, old image")
	if _, err := d.expect(ctx, reload, 0, cart); err != nil {
		return err
	}
	windows, err := d.open(ctx, web)
	if err != nil {
		return err
	}
	d.atTheEnd(released, func() scorecard.Finding {
		back, same := false, true
		for _, c := range d.changes(windows[0]) {
			back = back || c.ImageBefore != c.ImageAfter
			same = same && c.AnnotationsBefore[configHash] == c.AnnotationsAfter[configHash]
		}
		return scorecard.Rollouts(1, d.counts(windows)...).
			And(back, "old image", "same image").And(same, "configuration kept", "configuration not kept")
	})
	if _, err := d.shell.run(ctx, kubectl("rollout", "undo", "deployment/cart")...); err != nil {
		return err
	}
	r, err := d.shell.run(ctx, kubectl("rollout", "undo", "deployment/web")...)
	if err != nil {
		return err
	}
	return d.await(ctx, r.ended, windows...)
}

// down: the change comes while no replica runs.
func (d *demo) down(ctx context.Context) error {
	once := d.card.Promise("a Secret changes while pod-reloader is down", "1 rollout at its start")
	windows, err := d.open(ctx, ledger)
	if err != nil {
		return err
	}
	var started time.Time
	d.atTheEnd(once, func() scorecard.Finding {
		changes := d.changes(windows[0])
		late := len(changes) > 0 && !started.IsZero() && changes[0].Time.After(started)
		return scorecard.Rollouts(1, d.counts(windows)...).And(late, "after its start", "not after its start")
	})
	if err := d.stopReloader(ctx); err != nil {
		return err
	}
	if _, err := d.shell.run(ctx, set("secret/ledger", "stringData", "signing-key", "second")...); err != nil {
		return err
	}
	started = time.Now()
	if err := d.startReloader(ctx); err != nil {
		return err
	}
	return d.await(ctx, started, windows...)
}

func (d *demo) stopReloader(ctx context.Context) error {
	if d.reloader == nil {
		d.narrator.Say("It is not there anyway.")
		return nil
	}
	begun := time.Now()
	if err := d.reloader.StopAll(ctx); err != nil {
		return err
	}
	d.narrator.Say("Both processes got SIGTERM and ended in %s (draining cut to %d ms from its default of 10 s).",
		narration.Seconds(time.Since(begun)), drain.Milliseconds())
	return nil
}

func (d *demo) startReloader(ctx context.Context) error {
	if d.reloader == nil {
		return nil
	}
	d.narrator.Say("Both are started again.")
	return d.reloader.StartAll(ctx)
}

// why: the program's own explanation, without a cluster's logs.
func (d *demo) why(ctx context.Context) error {
	named := d.card.Promise("pod-reloader why", "names "+cause)
	r, err := d.shell.run(ctx, "pod-reloader", "why", "deployment/cart", "-n", namespace)
	if err != nil {
		return err
	}
	named.Judge(scorecard.Named(cause+" modified", scorecard.Source{Name: "its output", Text: r.stdout}))
	return nil
}

// distance is how far two reloads of a workload must be apart, less what the observer may be late by.
const distance = 5*time.Second - 500*time.Millisecond

// twice changes a workload twice in a row. It comes last because the second rollout is the barrier for all that the demo
// says about rollouts that did not come: what was due for any other workload before, held back by no matter which gate,
// was due earlier than this.
func (d *demo) twice(ctx context.Context) error {
	apart := d.card.Promise("two changes in a row", "2 rollouts, about 5 s apart")
	counted := d.card.Promise("count the ReplicaSets of cart, catalog, web, search", "2, 2, 3, 1")
	windows, err := d.open(ctx, heartbeat)
	if err != nil {
		return err
	}
	d.atTheEnd(apart, func() scorecard.Finding {
		var times []time.Time
		for _, c := range d.changes(windows[0]) {
			times = append(times, c.Time)
		}
		return scorecard.Apart(scorecard.Rollouts(2, d.counts(windows)...), distance, times...)
	})
	d.atTheEnd(counted, d.countReplicaSets)
	for n := range 2 {
		if err := d.beat(ctx, windows[0], n+1); err != nil {
			return err
		}
	}
	d.settled = true
	d.narrator.Say("The second had to wait. Whatever else was due would have come by now, so the counts are final.")
	return d.awaitReplicaSets(ctx)
}
