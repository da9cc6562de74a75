package watch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Bulk watches the objects of a resource and keeps those that its selectors
// choose in an indexed Store. All methods may be called by any goroutine, also
// from callbacks.
type Bulk struct {
	config    Config
	log       *slog.Logger
	indexer   *Indexer
	store     *Store
	debouncer *Debouncer
	informer  cache.SharedIndexInformer
	source    *source
	failures  *failures
	life      *lifecycle

	// transforming holds a token while Transform runs.
	transforming chan struct{}

	// loaded is the number of objects in the store after the last one of the
	// initial list: written by the informer's goroutine, read after sync.
	loaded atomic.Int64
}

// NewBulk validates the configuration; the error joins a *ConfigError for each
// fault. It sends no request: a resource that the cluster does not serve shows
// at Start, by LastWatchError, and may be installed later.
//
// A client that wraps another one must pass on IsWatchListSemanticsUnSupported,
// if that has the method: else client-go waits for a stream that never ends.
func NewBulk(config Config, client dynamic.Interface) (*Bulk, error) {
	indexer, selector, err := config.check(client)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", name(config.GVR, config.Namespace, ""), err)
	}
	logger := config.Logger.WithValues("resource", name(config.GVR, config.Namespace, ""))
	log := newLogger(logger)
	b := &Bulk{
		config:   config,
		log:      log,
		indexer:  indexer,
		failures: newFailures(log, config.OnWatchError),
		life:     newLifecycle(),

		transforming: make(chan struct{}, 1),
	}
	if b.store, err = NewStore(indexer.Width()); err != nil {
		return nil, err
	}
	b.debouncer, err = NewDebouncer(DebouncerConfig{
		Interval:       config.DebounceInterval,
		InitialSync:    true,
		CallDuringSync: config.CallOnChangeDuringSync,
		Callback:       b.changed,
		Logger:         logger,
	})
	if err != nil {
		return nil, err
	}
	b.source = &source{
		client: client, resource: config.GVR, namespace: config.Namespace, failures: b.failures,
		labels: config.LabelSelector, fields: selector.forServer(), prepare: b.prepare, selects: selector.Matches,
		tooLarge: config.TooLarge, listing: make(chan struct{}, 1),
	}
	b.informer = b.source.informer(0)
	return b, nil
}

// Start watches until the context ends or Stop is called, then returns nil; no
// callback runs any more. Only the first call starts anything. Others block
// until their context ends or the watcher is to end, and return the error of the
// first one; they do not wait for callbacks. A call after the end of the watcher
// returns that error, or ErrStopped if there is none.
func (b *Bulk) Start(ctx context.Context) error {
	return b.life.start(ctx, b.run)
}

// Stop ends the watcher for good, without waiting for it: Start returns when
// the last callback has. It may be called more than once and from callbacks.
func (b *Bulk) Stop() {
	b.life.stop()
}

func (b *Bulk) run(ctx context.Context) error {
	registration, err := attach(b.informer, b.failures, b.handler(ctx))
	if err != nil {
		return fmt.Errorf("watch %s: %w", name(b.config.GVR, b.config.Namespace, ""), err)
	}
	var running sync.WaitGroup
	running.Go(func() { b.informer.RunWithContext(discardClientLogs(ctx, b.config.Logger)) })
	running.Go(func() { b.debouncer.Run(ctx) })
	running.Go(func() { b.failures.report(ctx) })
	running.Go(func() {
		if cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
			b.completeSync(ctx)
		}
	})
	running.Wait()
	b.source.wait()
	return nil
}

// attach makes the handler see the informer's events. The registration reports
// when it, not only the informer, has seen every object of the initial list.
func attach(
	informer cache.SharedIndexInformer, failures *failures, handler cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	if err := informer.SetWatchErrorHandlerWithContext(failures.handle); err != nil {
		return nil, fmt.Errorf("set watch error handler: %w", err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, fmt.Errorf("add event handler: %w", err)
	}
	return registration, nil
}

// completeSync opens WaitForSync, ends the debouncer's sync mode and has
// OnSyncComplete called after the changes of the sync.
func (b *Bulk) completeSync(ctx context.Context) {
	count := int(b.loaded.Load())
	b.log.Log(ctx, levelDebug, "initial sync complete", "objects", count)
	b.debouncer.endSync(func() { close(b.life.synced) }, func(ctx context.Context) {
		if b.config.OnSyncComplete != nil {
			guard(ctx, b.log, "OnSyncComplete", func() error { return b.config.OnSyncComplete(ctx, b.Store(), count) })
		}
	})
}

func (b *Bulk) changed(ctx context.Context, stats ChangeStats) error {
	if b.config.OnChange == nil {
		return nil
	}
	return b.config.OnChange(ctx, b.Store(), stats)
}

// Store is what the watcher has stored. Its content is complete after sync, and
// then changes with every event.
func (b *Bulk) Store() Reader {
	return b.store.Reader()
}

// Flush calls OnChange for what has accumulated, as soon as the callback
// goroutine is free, and does not wait for it.
func (b *Bulk) Flush() {
	b.debouncer.Flush()
}

// IsSynced reports whether every object of the initial list is in the store. Once
// true, it stays so.
func (b *Bulk) IsSynced() bool {
	return b.life.isSynced()
}

// WaitForSync blocks until sync and returns the number of objects that the
// initial list brought into the store. Callbacks may still be running then.
// The error wraps the context's error and its cause, or ErrStopped; and the last
// watch error if there was one.
func (b *Bulk) WaitForSync(ctx context.Context) (int, error) {
	if err := b.life.wait(ctx, name(b.config.GVR, b.config.Namespace, ""), b.failures); err != nil {
		return 0, err
	}
	return int(b.loaded.Load()), nil
}

// LastWatchError is when and why list or watch failed last; the zero time if
// never. The watcher tries again by itself, with pauses of up to a minute.
// An expired resourceVersion (410) is no error, unless the request named none or
// the third watch in a row fails at once. Neither is the end of a stream, unless
// it comes before the initial list is complete, or within a second and before
// any event.
func (b *Bulk) LastWatchError() (time.Time, error) {
	return b.failures.last()
}
