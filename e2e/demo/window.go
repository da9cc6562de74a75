package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// window is the part of a workload's history that belongs to one promise: from its opening until the next one of the same
// workload is opened, or the end of the demo. So a rollout that comes late is found, whenever it comes.
type window struct {
	of observe.Workload
	n  int
}

// open begins a window for each of some workloads.
func (d *demo) open(ctx context.Context, workloads ...observe.Workload) ([]window, error) {
	if err := d.sync(ctx); err != nil {
		return nil, err
	}
	opened := make([]window, 0, len(workloads))
	for _, w := range workloads {
		opened = append(opened, window{w, len(d.windows[w])})
		d.windows[w] = append(d.windows[w], len(d.watcher.Changes(w)))
	}
	return opened, nil
}

// sync waits until the observer has seen all there is, which is no effect of pod-reloader's: it comes in any case.
func (d *demo) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, defaultPatience)
	defer cancel()
	return d.watcher.Sync(ctx)
}

// changes are the template changes, each a rollout, that were seen in a window.
func (d *demo) changes(w window) []observe.Change {
	changes := d.watcher.Changes(w.of)
	from, to := d.windows[w.of][w.n], len(changes)
	if len(d.windows[w.of]) > w.n+1 {
		to = d.windows[w.of][w.n+1]
	}
	return changes[min(from, len(changes)):to]
}

// counts are the numbers of rollouts in windows. They are certain once the last barrier was passed, if the observer has
// seen every version.
func (d *demo) counts(windows []window) []scorecard.Count {
	counts := make([]scorecard.Count, 0, len(windows))
	for _, w := range windows {
		counts = append(counts, scorecard.Count{N: len(d.changes(w)), Certain: d.settled && d.watcher.Unseen(w.of) == 0})
	}
	return counts
}

// sum is counts added up.
func (d *demo) sum(windows []window) scorecard.Count {
	total := scorecard.Count{Certain: true}
	for _, c := range d.counts(windows) {
		total.N, total.Certain = total.N+c.N, total.Certain && c.Certain
	}
	return total
}

// expect opens windows and promises a number of rollouts for each; they are counted at the end.
func (d *demo) expect(ctx context.Context, row *scorecard.Row, rollouts int, of ...observe.Workload) ([]window, error) {
	windows, err := d.open(ctx, of...)
	if err != nil {
		return nil, err
	}
	d.atTheEnd(row, func() scorecard.Finding { return scorecard.Rollouts(rollouts, d.counts(windows)...) })
	return windows, nil
}

// atTheEnd has a row judged after all steps.
func (d *demo) atTheEnd(row *scorecard.Row, find func() scorecard.Finding) {
	d.verdicts = append(d.verdicts, func() { row.Judge(find()) })
}

// await waits for one rollout in each window and shows when each was seen, counted from a time.
func (d *demo) await(ctx context.Context, since time.Time, windows ...window) error {
	return d.awaitNth(ctx, since, 1, windows...)
}

func (d *demo) awaitNth(ctx context.Context, since time.Time, n int, windows ...window) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.patience)
	defer cancel()
	type seen struct {
		what string
		at   time.Time
	}
	var all []seen
	for _, w := range windows {
		err := d.watcher.Await(ctx, fmt.Sprintf("rollout of %s", w.of), func() error {
			if have := len(d.changes(w)); have < n {
				return fmt.Errorf("%d of %d seen", have, n)
			}
			return nil
		})
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%s was not rolled out within %s", w.of, narration.Seconds(d.options.patience))
			}
			return err
		}
		all = append(all, seen{w.of.Kind + " " + w.of.Name, d.changes(w)[n-1].Time})
	}
	slices.SortFunc(all, func(a, b seen) int { return a.at.Compare(b.at) })
	for _, s := range all {
		d.narrator.Seen(narration.After(s.at.Sub(since)), s.what+" has a new pod template")
	}
	return nil
}
