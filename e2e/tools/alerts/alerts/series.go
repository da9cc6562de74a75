package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// series are the samples of a test.
type series []storage.Series

var _ storage.Queryable = series{}

// load reads series in the notation of promtool, such as 0+1x10.
func load(input []inputSeries, interval model.Duration) (series, error) {
	if interval <= 0 {
		return nil, fmt.Errorf("interval is missing")
	}
	var all series
	for _, in := range input {
		metric, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			return nil, fmt.Errorf("series %s: %w", in.Series, err)
		}
		var samples []chunks.Sample
		for i, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{at: int64(i) * time.Duration(interval).Milliseconds(), value: value.Value})
			}
		}
		all = append(all, storage.NewListSeries(metric, samples))
	}
	return all, nil
}

// query evaluates an expression at a time, with the defaults of Prometheus.
func (d series) query(text string, at time.Duration) (promql.Vector, error) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	defer func() { _ = engine.Close() }()
	query, err := engine.NewInstantQuery(context.Background(), d, nil, text, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer query.Close()
	return query.Exec(context.Background()).Vector()
}

// Querier implements storage.Queryable. The engine itself selects by time.
func (d series) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found series
		for _, s := range d {
			if matches(s.Labels(), matchers) {
				found = append(found, s)
			}
		}
		return &cursor{found: found}
	}}, nil
}

func matches(metric labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(metric.Get(m.Name)) {
			return false
		}
	}
	return true
}

// cursor goes through series.
type cursor struct {
	found series
	next  int
}

var _ storage.SeriesSet = &cursor{}

// Next implements storage.SeriesSet.
func (c *cursor) Next() bool { c.next++; return c.next <= len(c.found) }

// At implements storage.SeriesSet.
func (c *cursor) At() storage.Series { return c.found[c.next-1] }

// Err implements storage.SeriesSet.
func (*cursor) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (*cursor) Warnings() annotations.Annotations { return nil }

// sample is a value at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

var _ chunks.Sample = sample{}

// T implements chunks.Sample.
func (s sample) T() int64 { return s.at }

// F implements chunks.Sample.
func (s sample) F() float64 { return s.value }

// ST implements chunks.Sample: there is no start time.
func (sample) ST() int64 { return 0 }

// H implements chunks.Sample.
func (sample) H() *histogram.Histogram { return nil }

// FH implements chunks.Sample.
func (sample) FH() *histogram.FloatHistogram { return nil }

// Type implements chunks.Sample.
func (sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }

// Copy implements chunks.Sample.
func (s sample) Copy() chunks.Sample { return s }
