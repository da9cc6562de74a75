package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/pod-reloader/pod-reloader/pkg/serve"
)

// starter runs until its context ends; an error before that ends the program.
type starter interface {
	Start(ctx context.Context) error
}

// lifecycle is the order in which the program starts and stops. The loop stops at the first signal and gives its lease
// away at once, so that another replica goes on; what serves admission stays until the endpoint has drained.
type lifecycle struct {
	// loop is the manager with its caches and controllers.
	loop starter
	// serving are the servers and what they depend on.
	serving []starter
	probes  *probes
	drain   *serve.Drain
	// grace is how long serving goes on after the signal.
	grace time.Duration
	log   logr.Logger
}

// run returns nil after a signal (the end of the context), and an error if something stopped by itself.
func (l *lifecycle) run(ctx context.Context) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	group, serving := errgroup.WithContext(serving)
	for _, s := range l.serving {
		group.Go(func() error { return s.Start(serving) })
	}
	looping, stopLoop := context.WithCancel(ctx)
	defer stopLoop()
	loop := make(chan error, 1)
	go func() { loop <- l.loop.Start(looping) }()

	var ended error
	select {
	case <-ctx.Done():
	case <-serving.Done():
		// The group says why.
	case err := <-loop:
		if ctx.Err() == nil { // both may be ready
			ended, err = loopEnded(err), nil
		}
		loop <- err
	}
	l.stop(serving, ended)
	stopLoop()
	stopped := ignoreCanceled(<-loop) // it uses what serves, up to its end
	stopServing()
	return errors.Join(ended, group.Wait(), stopped)
}

// stop makes the replica unready and waits for the endpoint to drain. A second signal does not get here: it ends the
// process.
func (l *lifecycle) stop(serving context.Context, reason error) {
	l.probes.stopping.Store(true)
	l.drain.On.Store(true)
	if serving.Err() != nil || l.grace == 0 {
		return
	}
	l.log.Info("stopping: serving admission until the endpoint has drained",
		"gracePeriod", l.grace.String(), "failed", reason != nil)
	timer := time.NewTimer(l.grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-serving.Done():
	}
}

// loopEnded explains a manager that stopped although its context has not ended.
func loopEnded(err error) error {
	if err == nil {
		return errors.New("the manager stopped by itself")
	}
	return fmt.Errorf("run the manager: %w", err)
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
