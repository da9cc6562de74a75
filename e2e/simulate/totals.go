package simulate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

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
