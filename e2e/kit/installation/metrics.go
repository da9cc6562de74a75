package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are those of all replicas that answered.
type Metrics []Sample

// Sample is one number. A histogram is its _count and its _sum.
type Sample struct {
	// Replica is the name of the process.
	Replica, Name string
	Labels        map[string]string
	Value         float64
}

// Sum adds up the samples of a name that have all the given labels, as name, value, name, value….
func (m Metrics) Sum(name string, labels ...string) float64 {
	total := 0.0
	for _, s := range m {
		if s.Name == name && s.has(labels) {
			total += s.Value
		}
	}
	return total
}

// Since are the increases since an earlier state, for counters of replicas that ran all the time.
func (m Metrics) Since(earlier Metrics) Metrics {
	increases := slices.Clone(m)
	for n, s := range increases {
		var labels []string
		for name, value := range s.Labels {
			labels = append(labels, name, value)
		}
		for _, before := range earlier {
			if before.Replica == s.Replica && before.Name == s.Name &&
				len(before.Labels) == len(s.Labels) && before.has(labels) {
				increases[n].Value -= before.Value
			}
		}
	}
	return increases
}

func (s Sample) has(labels []string) bool {
	for n := 0; n+1 < len(labels); n += 2 {
		if s.Labels[labels[n]] != labels[n+1] {
			return false
		}
	}
	return true
}

const (
	// scrapeTimeout bounds the wait for a replica's metrics: long enough for a loaded machine, and a failure in the end.
	scrapeTimeout = time.Minute
	// askTimeout bounds the wait where a replica may be frozen, and is asked again.
	askTimeout = 2 * time.Second
)

// Metrics are those of all replicas that run. The error names one that runs and does not answer; the others' metrics
// are there all the same.
func (i *Installation) Metrics(ctx context.Context) (Metrics, error) {
	var all Metrics
	var errs []error
	for _, r := range i.Replicas() {
		if r.PID() == 0 {
			continue
		}
		samples, err := r.Metrics(ctx)
		all = append(all, samples...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// Metrics are those of one replica.
func (r *Replica) Metrics(ctx context.Context) (Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.MetricsURL, nil)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", r.Name(), err)
	}
	request.Close = true // a restarted replica must not be asked on a dead connection
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", r.Name(), err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape %s: %s", r.Name(), response.Status)
	}
	return parse(r.Name(), response.Body)
}

func parse(replica string, text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", replica, err)
	}
	var samples Metrics
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			add := func(suffix string, value float64) {
				samples = append(samples, Sample{Replica: replica, Name: name + suffix, Labels: labels, Value: value})
			}
			switch {
			case m.GetHistogram() != nil:
				add("_count", float64(m.GetHistogram().GetSampleCount()))
				add("_sum", m.GetHistogram().GetSampleSum())
			case m.GetCounter() != nil:
				add("", m.GetCounter().GetValue())
			case m.GetGauge() != nil:
				add("", m.GetGauge().GetValue())
			}
		}
	}
	return samples, nil
}

// Leader waits until exactly one replica says that it leads, and returns it. With a frozen leader it is the one that took
// over.
func (i *Installation) Leader(ctx context.Context) (*Replica, error) {
	var leader *Replica
	err := await(ctx, "a leader", func(ctx context.Context) error {
		var leaders []string
		for _, r := range i.Replicas() {
			asking, cancel := context.WithTimeout(ctx, askTimeout)
			samples, err := r.Metrics(asking)
			cancel()
			if err == nil && samples.Sum("leader_election_master_status") == 1 {
				leader, leaders = r, append(leaders, r.Name())
			}
		}
		if len(leaders) != 1 {
			return fmt.Errorf("leaders are [%s]", strings.Join(leaders, " "))
		}
		return nil
	})
	return leader, err
}
