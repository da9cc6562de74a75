package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// load is one of the scenarios of the load test of Stakater's Reloader, with its annotations. Workloads and objects are spread over
// the namespaces in turn; a workload reads the next objects of its namespace.
type load struct {
	name                                 string
	namespaces, objects, workloads, uses int
	// every is the time between two writes of a writer; the writers take the objects in turn.
	every   time.Duration
	writers int
	// kinds are those of the workloads, in turn.
	kinds []string
	// secrets makes each second object a Secret. bytes is the size of each of its two keys.
	secrets bool
	bytes   int
	// metadata edits a label only. churn deletes workloads and creates them again.
	metadata, churn bool
	// disturb happens in the middle.
	disturb     func(ctx context.Context) error
	annotations map[string]string
}

// loads are S1 to S13 but S11, which needs a flag.
func loads(e *environment) []load {
	tenth := 100 * time.Millisecond
	return []load{
		{name: "s1", objects: 10, workloads: 10, every: tenth},
		{name: "s2", objects: 1, workloads: 50, every: 5 * time.Second},
		{name: "s3", namespaces: 11, objects: 22, workloads: 22, every: 2 * tenth},
		{name: "s4", objects: 10, workloads: 10, every: tenth, metadata: true},
		{name: "s5", objects: 10, workloads: 10, every: 5 * tenth, churn: true},
		{name: "s6", objects: 10, workloads: 10, every: tenth, disturb: func(ctx context.Context) error { return e.replaceLeader(ctx) }},
		{name: "s7", objects: 50, workloads: 50, every: tenth, writers: 10},
		{name: "s8", objects: 4, workloads: 4, every: 5 * tenth, bytes: 100_000},
		{name: "s9", objects: 9, workloads: 9, every: 2 * tenth, kinds: []string{"Deployment", "StatefulSet", "DaemonSet"}},
		{name: "s10", objects: 10, workloads: 10, every: 2 * tenth, secrets: true},
		{name: "s12", objects: 10, workloads: 10, every: 2 * tenth, annotations: map[string]string{pausePeriodKey: "3s"}},
		{name: "s13", objects: 30, workloads: 10, uses: 3, every: tenth, secrets: true},
	}
}

// reloaderLoad runs all of them at once, with pod-reloader as shipped.
func reloaderLoad(ctx context.Context, e *environment) ([]figure.Figure, error) {
	return loadAll(ctx, e, loads(e))
}

// annotationsLoad is S11: what S1 is, under Reloader's strategy "annotations".
func annotationsLoad(ctx context.Context, e *environment) ([]figure.Figure, error) {
	return e.withArgs(ctx, []string{"--reload-strategy=annotations"}, func(ctx context.Context) ([]figure.Figure, error) {
		return loadAll(ctx, e, []load{{name: "s11", objects: 10, workloads: 10, every: 100 * time.Millisecond}})
	})
}

// loadAll creates everything, writes for a while, and judges when nothing is left to do.
func loadAll(ctx context.Context, e *environment, loads []load) ([]figure.Figure, error) {
	if err := e.watch(ctx, ""); err != nil {
		return nil, err
	}
	runs := make([]*loadRun, len(loads))
	for i, l := range loads {
		runs[i] = newLoadRun(e, l)
		if err := runs[i].prepare(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	if err := e.awaitSettled(ctx); err != nil {
		return nil, err
	}
	group, running := errgroup.WithContext(ctx)
	for _, r := range runs {
		group.Go(func() error { return r.run(running) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := e.awaitSettled(ctx); err != nil {
		return nil, err
	}
	figures := make([]figure.Figure, 0, len(runs))
	for _, r := range runs {
		f, err := r.judge(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.load.name, err)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// loadRun is a load under way. A writer has objects of its own; the workloads belong to the one that deletes them.
type loadRun struct {
	*environment
	load

	// began and edits are, for each object, when the last change of its content was sent, and how many there were.
	began []time.Time
	edits []int
	// created is when the API server had last answered to the creation of a workload.
	created []time.Time
}

func newLoadRun(e *environment, l load) *loadRun {
	l.objects, l.workloads = max(l.objects/e.LoadShare, 1), max(l.workloads/e.LoadShare, 1)
	l.namespaces, l.writers, l.uses = min(max(l.namespaces, 1), l.objects), min(max(l.writers, 1), l.objects), max(l.uses, 1)
	return &loadRun{
		environment: e, load: l, began: make([]time.Time, l.objects), edits: make([]int, l.objects), created: make([]time.Time, l.workloads),
	}
}

func (r *loadRun) prepare(ctx context.Context) error {
	for n := range r.namespaces {
		if err := r.createNamespace(ctx, r.namespace(n)); err != nil {
			return err
		}
	}
	err := parallel(ctx, r.objects, func(ctx context.Context, j int) error { return r.Create(ctx, r.object(j)) })
	if err != nil {
		return err
	}
	return parallel(ctx, r.workloads, r.create)
}

func (r *loadRun) create(ctx context.Context, i int) error {
	if err := r.Create(ctx, r.workload(i)); err != nil {
		return err
	}
	r.created[i] = time.Now()
	return nil
}

// run writes for the time of the load.
func (r *loadRun) run(ctx context.Context) error {
	ends := time.Now().Add(r.LoadFor)
	group, ctx := errgroup.WithContext(ctx)
	for writer := range r.writers {
		group.Go(func() error { return r.write(ctx, writer, ends) })
	}
	if r.churn {
		group.Go(func() error { return r.replaceWorkloads(ctx, ends) })
	}
	if r.disturb != nil {
		group.Go(func() error { return errors.Join(pause(ctx, r.LoadFor/2), r.disturb(ctx)) })
	}
	return group.Wait()
}

// write edits the objects of one writer in turn.
func (r *loadRun) write(ctx context.Context, writer int, ends time.Time) error {
	for n := 0; time.Now().Before(ends); n++ {
		due := time.Now().Add(r.every)
		j := (writer + n*r.writers) % r.objects
		if err := r.edit(ctx, j, n); err != nil {
			return err
		}
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
	}
	return nil
}

func (r *loadRun) edit(ctx context.Context, j, n int) error {
	if !r.metadata {
		r.began[j], r.edits[j] = time.Now(), r.edits[j]+1
	}
	return r.Patch(ctx, r.object(j), r.patch(n))
}

// replaceWorkloads deletes a workload every half second, and creates it again.
func (r *loadRun) replaceWorkloads(ctx context.Context, ends time.Time) error {
	for n := 0; time.Now().Before(ends); n++ {
		i := n % r.workloads
		if err := r.Delete(ctx, r.workload(i)); err != nil {
			return err
		}
		if err := errors.Join(r.create(ctx, i), pause(ctx, 500*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// judge counts the workloads that are not up to date, and the restarts too many.
func (r *loadRun) judge(ctx context.Context) (figure.Figure, error) {
	err := await(ctx, "the end of all pauses", 100*time.Millisecond, time.Minute, func(context.Context) error { return r.resumed(r.watcher) })
	if err != nil {
		return figure.Figure{}, err
	}
	if err := r.watcher.Sync(ctx); err != nil {
		return figure.Figure{}, err
	}
	off, restarts, edits := 0, 0, 0
	for i := range r.workloads {
		changes := r.watcher.Changes(r.seen(i))
		missed, doubled := r.missed(i, changes), r.doubled(i, changes)
		if missed+doubled > 0 {
			r.say("%s: %s: %d missed, %d doubled: %v", r.load.name, r.seen(i), missed, doubled, changes)
		}
		off += missed + doubled
		restarts += len(changes)
	}
	for _, n := range r.edits {
		edits += n
	}
	return figure.Figure{
		Name: r.load.name + ": missed or doubled", Value: float64(off), Budget: figure.Exactly(0),
		Note: fmt.Sprintf("%d objects changed %d times, %d workloads restarted %d times", r.objects, edits, r.workloads, restarts),
	}, nil
}

// missed is 1 if the last restart of a workload began before the last change of what it reads. All contents differ, so that what
// restarted later has the last one.
func (r *loadRun) missed(i int, changes []observe.Change) int {
	var last time.Time
	for _, j := range r.reads(i) {
		if r.began[j].After(last) {
			last = r.began[j]
		}
	}
	if last.Before(r.created[i]) || len(changes) > 0 && changes[len(changes)-1].Time.After(last) {
		return 0
	}
	return 1
}

// doubled is how many restarts of a workload had no content of their own, or no change before them.
func (r *loadRun) doubled(i int, changes []observe.Change) int {
	edits := 0
	for _, j := range r.reads(i) {
		edits += r.edits[j]
	}
	var hashes []string
	for _, c := range changes {
		hashes = append(hashes, c.AnnotationsAfter[configHashKey])
	}
	slices.Sort(hashes)
	return max(len(changes)-len(slices.Compact(hashes)), len(changes)-edits, 0)
}
