package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const (
	// defaultPatience bounds each wait for an effect: long enough for a loaded machine.
	defaultPatience = 2 * time.Minute
	// interrupted is the exit code after Ctrl-C, as shells have it.
	interrupted = 130
)

// options of a run.
type options struct {
	// out gets the whole narration.
	out     io.Writer
	colours bool
	// keep leaves everything running, after the table, until the context ends.
	keep bool
	// patience bounds each wait for an effect; 0 means defaultPatience.
	patience time.Duration
	// absent leaves pod-reloader out: then promises are broken, and the demo must say so.
	absent bool
	// installed is called when pod-reloader is installed; nil does nothing.
	installed func(*installation.Installation)
}

// demo is one run. It is for one goroutine.
type demo struct {
	options  options
	narrator *narration.Narrator
	shell    *shell
	card     scorecard.Card
	cp       *controlplane.ControlPlane
	// reloader is nil where pod-reloader is left out.
	reloader *installation.Installation
	watcher  *observe.Watcher
	// version is that of Kubernetes, program is pod-reloader's executable.
	version, program string
	// windows say for each workload from which of its template changes on each step's count begins.
	windows map[observe.Workload][]int
	// verdicts are what is judged at the end.
	verdicts []func()
	// building is how much of the time went into builds.
	building time.Duration
	// settled says that the last barrier was passed: what comes late has come.
	settled bool
}

// run plays everything and returns the exit code.
func run(ctx context.Context, o options) int {
	o.patience = cmp.Or(o.patience, defaultPatience)
	d := &demo{
		options: o, windows: map[observe.Workload][]int{},
		narrator: narration.New(o.out, o.colours, time.Now),
	}
	defer d.stop()
	if err := d.stage(ctx); err != nil {
		return d.giveUp(ctx, err)
	}
	d.play(ctx)
	if ctx.Err() != nil {
		return d.giveUp(ctx, ctx.Err())
	}
	d.judge(ctx)
	code := d.conclude()
	if o.keep {
		d.wait(ctx)
	}
	return code
}

// giveUp ends a run that has no table.
func (d *demo) giveUp(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		d.narrator.Plain("Interrupted: stopping everything.\n")
		return interrupted
	}
	d.narrator.Failure(err.Error())
	return 1
}

// play plays the steps. What goes wrong in one is reported, and the next is played.
func (d *demo) play(ctx context.Context) {
	for _, s := range steps() {
		if ctx.Err() != nil {
			return
		}
		d.narrator.Step(s.title)
		before := len(d.card.Rows())
		err := s.play(d, ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		d.narrator.Failure("✗ " + err.Error())
		d.card.FailFrom(before)
	}
}

// judge compares what the observer has seen with what was promised.
func (d *demo) judge(ctx context.Context) {
	if err := d.sync(ctx); err != nil {
		d.narrator.Failure("✗ " + err.Error())
		d.settled = false
	}
	for _, verdict := range d.verdicts {
		verdict()
	}
}

// conclude prints the table and returns the exit code.
func (d *demo) conclude() int {
	d.narrator.Plain(scorecard.Table(d.card.Rows(), scorecard.Style{
		Head: d.narrator.Bold, Kept: d.narrator.Green, Broken: d.narrator.Red,
	}))
	total, broken := len(d.card.Rows()), d.card.Broken()
	outcome := d.narrator.Green(fmt.Sprintf("All %d promises kept", total))
	if broken > 0 {
		outcome = d.narrator.Red(fmt.Sprintf("%d of %d promises broken", broken, total))
	}
	elapsed := "in " + narration.Seconds(d.narrator.Elapsed())
	if d.building > time.Second {
		elapsed += ", of which " + narration.Seconds(d.building) + " for building"
	}
	d.narrator.Plain(fmt.Sprintf("%s, %s.\n", outcome, elapsed))
	return min(broken, 1)
}

// wait keeps everything running.
func (d *demo) wait(ctx context.Context) {
	d.narrator.Plain(fmt.Sprintf("Everything keeps running. In another terminal:\n\n"+
		"  export KUBECONFIG=%s\n  export PATH=%s:%s:$PATH\n\nCtrl-C here ends it and leaves nothing behind.\n",
		d.cp.AdminKubeconfig(), filepath.Dir(d.shell.programs["kubectl"]), filepath.Dir(d.program)))
	<-ctx.Done()
}

// stop leaves nothing running and no file.
func (d *demo) stop() {
	if d.watcher != nil {
		d.watcher.Stop()
	}
	var failures []error
	if d.reloader != nil {
		failures = append(failures, d.reloader.Close())
	}
	if d.cp != nil {
		failures = append(failures, d.cp.Stop())
	}
	if err := errors.Join(failures...); err != nil {
		d.narrator.Failure("stopping: " + err.Error())
	}
}
