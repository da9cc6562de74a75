package main

import (
	"context"

	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
)

// verified: a client that knows the published recipe asks for a reload, first with what it saw before a change, then with
// what there is.
func (d *demo) verified(ctx context.Context) error {
	outdated := d.card.Promise("a client asks for a reload, outdated digest", "refused with 409")
	current := d.card.Promise("it asks with the digest of what there is", "1 rollout, at once")
	windows, err := d.open(ctx, agent)
	if err != nil {
		return err
	}
	byThatWrite := false
	d.atTheEnd(current, func() scorecard.Finding {
		return scorecard.Rollouts(1, d.counts(windows)...).And(byThatWrite, "by that very write", "not by that write")
	})
	d.narrator.Say("agent was reloaded a moment ago. pod-reloader itself would reload it again only after the refractory period of 5 s. " +
		"A client need not wait: it proves by a SHA-256 over UIDs and resourceVersions that it has seen the present configuration.")
	before, err := d.digest(ctx)
	if err != nil {
		return err
	}
	_, err = d.shell.run(ctx, set("configmap/agent", "data", "INTERVAL", "10s")...)
	if err != nil {
		return err
	}
	r, err := d.shell.try(ctx, kubectl("annotate", "daemonset/agent", configHash+"="+before)...)
	if err != nil {
		return err
	}
	outdated.Judge(scorecard.Refused(r.exitCode, r.stderr, "(Conflict)", "409 Conflict"))
	d.narrator.Say("It reads again and repeats:")
	now, err := d.digest(ctx)
	if err != nil {
		return err
	}
	r, err = d.shell.run(ctx, kubectl("annotate", "daemonset/agent", configHash+"="+now)...)
	if err != nil {
		return err
	}
	// What the write has changed is stored when kubectl returns.
	if err := d.sync(ctx); err != nil {
		return err
	}
	byThatWrite = len(d.changes(windows[0])) == 1
	return d.await(ctx, r.ended, windows...)
}

// digest reads what the DaemonSet agent depends on, as a client does, and computes the digest of it.
func (d *demo) digest(ctx context.Context) (string, error) {
	r, err := d.shell.run(ctx, kubectl("get", "configmap/features", "configmap/agent", "secret/agent",
		"-o", "jsonpath-file=e2e/demo/output/versions.jsonpath")...)
	if err != nil {
		return "", err
	}
	objects, err := parseSeen(r.stdout)
	if err != nil {
		return "", err
	}
	return revision(objects...), nil
}
