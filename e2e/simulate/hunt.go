package simulate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// shrinkFor is how much real time may be spent on making a history shorter, so that a hunt ends in time.
const shrinkFor = 40 * time.Second

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
	h := &hunt{options: o, known: known, started: time.Now(), out: out, shortened: map[string]int{}, sums: newTotals()}
	h.sums.count("known", 0)
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
	var p *process
	defer func() { h.ended(p) }()
	for {
		seed, more := h.take(ctx)
		if !more {
			return nil
		}
		if p == nil {
			var err error
			if p, err = startProcess(ctx, profileVariable+"="+h.options.CPUProfile); err != nil {
				return err
			}
		}
		drawn := Draw(seed, h.options.Draw)
		result, err := p.do(job{History: drawn})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // it crashed: that is a finding, too
			result = crashed(drawn, err)
			h.ended(p)
			p = nil
		}
		h.judge(ctx, p, drawn, result)
	}
}

// ended lets a worker end and counts its processor time.
func (h *hunt) ended(p *process) {
	took := p.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sums.processor += took
}

func crashed(drawn history.History, err error) outcome {
	drawn.Law = "alive"
	return outcome{Short: &drawn, Violations: []oracle.Violation{{Law: "alive", Signature: "alive/crash", Text: err.Error()}}}
}

// judge counts an outcome, and looks closer at a failure that was not seen before.
func (h *hunt) judge(ctx context.Context, p *process, drawn history.History, result outcome) {
	h.mu.Lock()
	h.sums.add(result)
	fresh := h.known.Unknown(result.Violations)
	known := len(result.Violations) - len(fresh)
	h.sums.count("known", known)
	for _, v := range result.Violations {
		h.sums.signature(v.Signature, drawn.Seed, time.Since(h.started), h.known.Has(v))
	}
	if len(fresh) == 0 {
		h.mu.Unlock()
		return
	}
	h.sums.failed++
	first := fresh[0]
	h.shortened[first.Signature]++
	again := h.shortened[first.Signature] > 1
	h.over = h.options.First
	h.mu.Unlock()
	if h.options.First {
		h.print("%s by seed %d: %s: %s\n", first.Signature, drawn.Seed, first.Subject, first.Text)
		return
	}
	if again {
		h.print("seed %d: %s again\n", drawn.Seed, first.Signature)
		return
	}
	h.print("seed %d breaks the law %q\n  %s: %s\n", drawn.Seed, first.Law, first.Subject, first.Text)
	short := result.Short
	if short == nil && p != nil && h.options.Shrink > 0 {
		h.print("  making it shorter …\n")
		if closer, err := p.do(job{History: drawn, Shrink: h.options.Shrink, ShrinkFor: shrinkFor, Want: first.Signature}); err == nil && ctx.Err() == nil && closer.Short != nil {
			short = closer.Short
		}
	}
	if short == nil {
		short = &drawn
	}
	h.keep(*short, first)
}

// keep writes a failing history to a file and prints it in words.
func (h *hunt) keep(short history.History, v oracle.Violation) {
	if err := os.MkdirAll(h.options.Out, 0o750); err != nil {
		h.print("  cannot keep it: %v\n", err)
		return
	}
	file := filepath.Join(h.options.Out, fmt.Sprintf("%s-%d.json", strings.NewReplacer("/", "-", " ", "-").Replace(v.Signature), short.Seed))
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

// totals are the sums over all histories of a hunt.
type totals struct {
	histories, steps, failed int
	requests, reviews, hits  int
	lasted, processor        time.Duration
	tried, judged, others    map[string]int
	signatures               map[string]*sighting
}

// sighting is what is known of one signature.
type sighting struct {
	seed  uint64
	after time.Duration
	times int
	known bool
}

func newTotals() totals {
	return totals{tried: map[string]int{}, judged: map[string]int{}, others: map[string]int{}, signatures: map[string]*sighting{}}
}

func (t *totals) count(name string, n int) { t.others[name] += n }

func (t *totals) add(o outcome) {
	t.histories++
	t.requests += o.Requests
	t.reviews += o.Reviews
	t.hits += o.Hits
	t.lasted += o.Lasted
	for name, n := range o.Tried {
		t.tried[name] += n
		t.steps += n
	}
	for name, n := range o.Judged {
		t.judged[name] += n
	}
}

func (t *totals) signature(name string, seed uint64, after time.Duration, known bool) {
	s := t.signatures[name]
	if s == nil {
		s = &sighting{seed: seed, after: after, known: known}
		t.signatures[name] = s
	}
	s.times++
}

func (t *totals) print(out io.Writer, took time.Duration) {
	fmt.Fprintf(out, "%d histories with %d steps in %s (%.0f a minute): %s of fake time, %d requests, %d of them hit by faults, %d reviews\n",
		t.histories, t.steps, took.Round(time.Second), float64(t.histories)/took.Minutes(), t.lasted.Round(time.Minute), t.requests, t.hits, t.reviews)
	fmt.Fprintf(out, "processor time: %s, %s for each history\n", t.processor.Round(time.Millisecond),
		(t.processor / time.Duration(max(t.histories, 1))).Round(time.Millisecond))
	fmt.Fprintf(out, "tried: %s\n", listing(t.tried))
	fmt.Fprintf(out, "judged: %s\n", listing(t.judged))
	for _, name := range slices.Sorted(maps.Keys(t.signatures)) {
		s := t.signatures[name]
		note := ""
		if s.known {
			note = " (known to be broken)"
		}
		fmt.Fprintf(out, "broken: %s, %d times, first by seed %d after %s%s\n", name, s.times, s.seed, s.after.Round(time.Second), note)
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", t.histories-t.failed, t.failed)
}

func listing(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
