package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// DefaultDebounceInterval is the refractory period where none is configured.
const DefaultDebounceInterval = 5 * time.Second

// NoDebounce is the interval that switches debouncing off: every change makes a
// callback at once. Changes that come while a callback runs are batched for the
// next one, and those of the initial sync as with any interval.
const NoDebounce time.Duration = -1

// DebouncerConfig configures a Debouncer.
type DebouncerConfig struct {
	// Interval is the refractory period: the least time between the beginnings
	// of two callbacks. 0 means DefaultDebounceInterval; NoDebounce, none.
	Interval time.Duration
	// InitialSync begins in sync mode, which EndSync ends.
	InitialSync bool
	// CallDuringSync makes callbacks in sync mode too; else changes accumulate
	// until its end.
	CallDuringSync bool
	// Callback receives the changes since the last call, never empty ones.
	// Required. Run calls it, so that calls never overlap; the context ends
	// when Run is to end. It may block: changes go on accumulating, in three
	// integers. Its errors and panics are logged, but for the error of the context
	// after its end.
	Callback func(ctx context.Context, stats ChangeStats) error
	// Logger may be the zero value, which discards everything.
	Logger logr.Logger
}

// Debouncer batches changes. The first change after a quiet interval makes a
// callback at once (leading edge); those that follow within the interval are
// batched until it has expired.
//
// Record, Flush and EndSync never block and may be called by any goroutine,
// also from the callback.
type Debouncer struct {
	config DebouncerConfig
	log    *slog.Logger
	wake   chan struct{} // holds one token: there may be something to do
	// running holds a token while Run does.
	running chan struct{}

	mu      sync.Mutex
	pending ChangeStats
	syncing bool
	flush   bool
	fired   time.Time             // begin of the last callback
	after   func(context.Context) // what is to run when the changes of the sync are out
}

// NewDebouncer validates the configuration. The error joins a *ConfigError for
// each fault.
func NewDebouncer(config DebouncerConfig) (*Debouncer, error) {
	var faults []error
	if fault := checkInterval("Interval", config.Interval); fault != nil {
		faults = append(faults, fault)
	}
	if config.Callback == nil {
		faults = append(faults, &ConfigError{Field: "Callback", Reason: "is missing"})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if config.Interval == 0 {
		config.Interval = DefaultDebounceInterval
	}
	return &Debouncer{
		config:  config,
		log:     newLogger(config.Logger),
		wake:    make(chan struct{}, 1),
		running: make(chan struct{}, 1),
		syncing: config.InitialSync,
	}, nil
}

func checkInterval(field string, interval time.Duration) error {
	if interval >= 0 || interval == NoDebounce {
		return nil
	}
	return &ConfigError{
		Field: field, Expression: interval.String(),
		Reason: fmt.Sprintf("is negative; 0 means the default of %s, NoDebounce none", DefaultDebounceInterval),
	}
}

// Record adds the counts to the window; IsInitialSync is ignored.
func (d *Debouncer) Record(changes ChangeStats) {
	if changes.Empty() {
		return
	}
	d.mu.Lock()
	// The first change of a window wakes Run, which knows when the window ends;
	// what is held back, the end of sync mode brings out.
	first := d.pending.Empty() && !d.held()
	d.pending = d.pending.plus(changes)
	d.mu.Unlock()
	if first {
		d.signal()
	}
}

// Flush delivers what has accumulated as soon as the callback is free, without
// waiting for the interval or for the end of sync mode, and returns without
// waiting for the callback. With nothing accumulated nothing happens.
func (d *Debouncer) Flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushPending()
}

// flushPending does not concern what is recorded later: with nothing pending it
// must leave no mark.
func (d *Debouncer) flushPending() {
	if !d.pending.Empty() {
		d.flush = true
		d.signal()
	}
}

// EndSync ends sync mode and delivers at once what has accumulated, with
// IsInitialSync false. Later calls do nothing.
func (d *Debouncer) EndSync() {
	d.endSync(func() {}, nil)
}

// endSync runs mark in the moment in which sync mode ends, and after, on the
// callback's goroutine, when the accumulated changes have been delivered.
func (d *Debouncer) endSync(mark func(), after func(context.Context)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.syncing {
		return
	}
	d.syncing, d.after = false, after
	d.flushPending()
	mark()
	d.signal()
}

func (d *Debouncer) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run makes the callbacks, on the calling goroutine, until the context ends.
// What is pending then is delivered by the next Run, if there is one. A Run
// that is called while another one runs waits until that one, or its own
// context, ends.
func (d *Debouncer) Run(ctx context.Context) {
	select {
	case d.running <- struct{}{}:
		defer func() { <-d.running }()
	case <-ctx.Done():
		return
	}
	d.signal() // another Run may have taken the signal of what is pending
	d.run(ctx)
}

func (d *Debouncer) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop() // until there is something to wait for
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		due := d.due(time.Now())
		if !due.stats.Empty() {
			guard(ctx, d.log, "OnChange", func() error { return d.config.Callback(ctx, due.stats) })
		}
		if due.wait > 0 {
			timer.Reset(due.wait) // also while after runs
		}
		if due.after != nil && ctx.Err() == nil {
			due.after(ctx)
		}
	}
}

// work is what Run has to do next.
type work struct {
	stats ChangeStats
	after func(context.Context)
	wait  time.Duration // until there is more to do; 0: until the next signal
}

// due takes what is to be delivered now.
func (d *Debouncer) due(now time.Time) work {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := work{after: d.after}
	flush := d.flush
	d.after, d.flush = nil, false
	switch wait := d.config.Interval - now.Sub(d.fired); {
	case d.pending.Empty():
	case flush, !d.held() && wait <= 0:
		next.stats = d.pending
		next.stats.IsInitialSync = d.syncing
		d.pending, d.fired = ChangeStats{}, now
	case !d.held():
		next.wait = wait
	}
	return next
}

// held reports whether callbacks wait for the end of sync mode.
func (d *Debouncer) held() bool {
	return d.syncing && !d.config.CallDuringSync
}
