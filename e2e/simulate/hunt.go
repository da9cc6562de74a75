package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// HuntOptions say how long histories are drawn and run, and how many at a time.
type HuntOptions struct {
	// Seed is the first; each history has the next.
	Seed uint64
	// N is how many histories are run; 0 means as many as For allows.
	N    int
	For  time.Duration
	Draw DrawOptions
	// Workers is how many processes run histories.
	Workers int
	// Out is the directory for histories that fail.
	Out string
	// First ends the hunt at the first finding, which is not made shorter.
	First bool
	// Shrink is how many runs may be spent on making one of them shorter.
	Shrink int
	// CPUProfile is the file into which each worker writes a profile, with its process number added; empty writes none.
	CPUProfile string
}

// UsageError is about what a person asked for.
type UsageError struct{ Err error }

// Error returns the text.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// hunt is one search.
type hunt struct {
	options HuntOptions
	known   Known
	started time.Time
	out     io.Writer
	// start starts a worker.
	start func(ctx context.Context) (worker, error)

	mu   sync.Mutex
	next uint64
	sums totals
	// shortened counts the findings of each signature: a history is shortened for the first one.
	shortened map[string]int
	over      bool
}

// Hunt runs histories and reports what it finds on out. It returns whether a history broke a law that is not known to be
// broken.
func Hunt(ctx context.Context, out io.Writer, o HuntOptions) (found bool, err error) {
	known, err := ReadKnown()
	if err != nil {
		return false, err
	}
	if !o.First { // before hours of hunting, not after
		if err := os.MkdirAll(o.Out, 0o750); err != nil {
			return false, &UsageError{fmt.Errorf("keep histories that fail: %w", err)}
		}
	}
	h := newHunt(out, known, o)
	var workers sync.WaitGroup
	errs := make([]error, o.Workers)
	for i := range o.Workers {
		workers.Go(func() { errs[i] = h.work(ctx) })
	}
	workers.Wait()
	h.sums.print(out, time.Since(h.started))
	for _, err := range errs {
		if err != nil {
			return h.sums.failed > 0, err
		}
	}
	return h.sums.failed > 0, nil
}

func newHunt(out io.Writer, known Known, o HuntOptions) *hunt {
	h := &hunt{options: o, known: known, started: time.Now(), out: out, shortened: map[string]int{}, sums: newTotals()}
	h.start = func(ctx context.Context) (worker, error) { return startProcess(ctx, profileVariable+"="+o.CPUProfile) }
	h.sums.count("known", 0)
	return h
}

// take returns the next seed; false when the hunt is over.
func (h *hunt) take(ctx context.Context) (uint64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil || h.over || h.options.N > 0 && h.next >= uint64(h.options.N) || h.options.N == 0 && time.Since(h.started) > h.options.For {
		return 0, false
	}
	h.next++
	return h.options.Seed + h.next - 1, true
}

// work runs histories in a process of its own until the hunt is over.
func (h *hunt) work(ctx context.Context) error {
	l := &lane{hunt: h}
	defer l.end()
	for {
		seed, more := h.take(ctx)
		if !more {
			return nil
		}
		drawn := Draw(seed, h.options.Draw)
		result, err := l.do(ctx, job{History: drawn})
		var crash *crashError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &crash):
			result = outcome{Violations: []oracle.Violation{crash.violation()}}
		case err != nil:
			return err
		}
		h.judge(ctx, l, drawn, result)
	}
}

// judge counts an outcome, and looks closer at a failure that was not seen before.
func (h *hunt) judge(ctx context.Context, l *lane, drawn history.History, result outcome) {
	first, again, found := h.count(drawn.Seed, result)
	switch {
	case !found:
	case h.options.First:
		h.print("%s by seed %d: %s: %s\n", first.Signature, drawn.Seed, first.Subject, first.Text)
	case again:
		h.print("seed %d: %s again\n", drawn.Seed, first.Signature)
	default:
		h.print("seed %d breaks the law %q\n  %s\n", drawn.Seed, first.Law, about(first))
		h.keep(l.shorten(ctx, failed(drawn, first, result.Trace), first))
	}
}

// count counts an outcome. It returns the first violation that is not known, and whether one like it was found before.
func (h *hunt) count(seed uint64, result outcome) (first oracle.Violation, again, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sums.add(result)
	fresh := h.known.Unknown(result.Violations)
	h.sums.count("known", len(result.Violations)-len(fresh))
	for _, v := range result.Violations {
		h.sums.signature(v.Signature, seed, time.Since(h.started), h.known.Has(v))
	}
	if len(fresh) == 0 {
		return oracle.Violation{}, false, false
	}
	h.sums.failed++
	first = fresh[0]
	h.shortened[first.Signature]++
	h.over = h.options.First
	return first, h.shortened[first.Signature] > 1, true
}

// keep writes a failing history to a file and prints it in words.
func (h *hunt) keep(short history.History) {
	file := filepath.Join(h.options.Out, fmt.Sprintf("%s-%d.json", strings.NewReplacer("/", "-", " ", "-").Replace(short.Law), short.Seed))
	if err := history.Write(file, short); err != nil {
		h.print("  cannot keep it: %v\n", err)
		return
	}
	h.print("\n%s\n%s  %s\n  again: make simulate REPLAY=%s\n\n", short.Words(Catalogue()), short.Law, short.About, file)
}

func (h *hunt) print(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.out, format, args...)
}
