package scenario

import (
	"context"
	"path"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

// watchEvents: what a change costs in package watch once the API server has sent it, and a look-up. No API server is in
// this, and no decoding, which is the same with and without the package: the benchmarks are the package's own. The floor
// is what a bare informer needs for the same events.
func watchEvents(ctx context.Context, e *environment) ([]figure.Figure, error) {
	found, err := goBench(ctx, path.Join("pkg", "watch"), "^Benchmark(Events|Debouncer|Get)$", e.BenchTime, e.BenchTimes)
	if err != nil {
		return nil, err
	}
	const (
		debouncer                      = "Debouncer"
		informer, bulk, loaded         = "Events/bare_informer", "Events/Bulk", "Events/Bulk_with_everything"
		wholeKey, firstOfTwo, identity = "Get/whole_key", "Get/first_of_two", "Get/identity"
	)
	if err := found.require(debouncer, informer, bulk, loaded, wholeKey, firstOfTwo, identity); err != nil {
		return nil, err
	}
	// perSecond is what must be kept up with.
	perSecond := figure.AtLeast(10_000)
	figures := []figure.Figure{
		{
			Name: "changes into a Debouncer", Unit: figure.PerSecond, Budget: perSecond,
			Value: found.median(debouncer, "events/s"),
		},
		{
			Name: "events through a Bulk to OnChange", Unit: figure.PerSecond, Budget: perSecond,
			Value: found.median(bulk, "events/s"), Floor: found.median(informer, "events/s"),
			Note: "objects of 2 kB, without network and decoding; the floor is a bare informer, to its handler",
		},
		{
			Name: "with selector, ignored fields, Transform", Unit: figure.PerSecond, Budget: perSecond,
			Value: found.median(loaded, "events/s"), Floor: found.median(informer, "events/s"),
		},
	}
	slower := figure.Times(5)
	figures = append(figures, found.costs("an event", bulk, informer, slower)...)
	figures = append(figures, found.costs("an event with all of that", loaded, informer, slower)...)
	for _, lookUp := range []struct{ name, benchmark string }{
		{"look-up among 20000: by the whole key", wholeKey},
		{"200 by the first of two keys", firstOfTwo},
		{"by namespace and name", identity},
	} {
		figures = append(figures, figure.Figure{Name: lookUp.name, Unit: figure.Nanoseconds, Value: found.median(lookUp.benchmark, "ns/op")})
	}
	return figures, nil
}

// costs are what one operation of a benchmark costs, compared with one of another benchmark. The budget is for the time.
func (m measurements) costs(name, benchmark, floor string, budget figure.Budget) (figures []figure.Figure) {
	for _, cost := range []struct {
		name, unit string
		as         figure.Unit
		budget     figure.Budget
	}{
		{"time", "ns/op", figure.Nanoseconds, budget},
		{"allocated", "B/op", figure.Bytes, figure.Budget{}},
		{"allocations", "allocs/op", figure.Count, figure.Budget{}},
	} {
		figures = append(figures, figure.Figure{
			Name: name + ": " + cost.name, Unit: cost.as, Budget: cost.budget,
			Value: m.median(benchmark, cost.unit), Floor: m.median(floor, cost.unit),
		})
	}
	return figures
}
