package oracle

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
)

// signatures returns those of the violations found.
func (s *harness) signatures() []string {
	var all []string
	for _, v := range s.oracle.Violations() {
		all = append(all, v.Signature)
	}
	return all
}

// expectOnly ends a case: one violation of a law with a signature, or none if it is empty.
func (s *harness) expectOnly(law, signature, because string) {
	s.t.Helper()
	var found []string
	for _, v := range s.oracle.Violations() {
		if v.Law == law {
			found = append(found, v.Signature)
		}
	}
	if signature == "" {
		assert.Empty(s.t, found, because)
		return
	}
	assert.Equal(s.t, []string{signature}, found, because)
}

// scrape hands in metrics of a replica.
func (s *harness) scrape(client string, reloads float64, gauges map[string]float64) {
	families := map[string]*dto.MetricFamily{
		reloadsMetric: {Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &reloads}}}},
	}
	for name, value := range gauges {
		families[name] = &dto.MetricFamily{Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}
	}
	s.oracle.Metrics(client, families, s.now)
}

// scrapeWatch hands in the metric about the watch of a resource.
func (s *harness) scrapeWatch(client, resource string, healthy float64) {
	label := "resource"
	s.oracle.Metrics(client, map[string]*dto.MetricFamily{watchHealthy: {Metric: []*dto.Metric{{
		Label: []*dto.LabelPair{{Name: &label, Value: &resource}}, Gauge: &dto.Gauge{Value: &healthy},
	}}}}, s.now)
}

// one case of a law: what happens, and the signature of the violation it must raise; empty for none.
type lawCase struct {
	options Options
	happens func(s *harness)
	want    string
	because string
}

func runLaw(t *testing.T, law string, cases map[string]lawCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, c.options)
			c.happens(s)
			s.expectOnly(law, c.want, c.because)
			for _, v := range s.oracle.Violations() {
				needless := v.Law == "restamp" || law == "restamp" // many cases have the program change a template without a reason
				assert.True(t, needless || v.Law == law, "a case of one law breaks no other: %s: %s", v.Law, v.Text)
			}
		})
	}
}
