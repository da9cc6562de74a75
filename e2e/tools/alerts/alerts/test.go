package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// variables are what templates of rules may use, as Prometheus defines them.
const variables = "{{$labels := .Labels}}{{$value := .Value}}"

// run evaluates the rules from the time 0 on, and checks the expectations at their times.
func (c testCase) run(rules []rulefmt.Rule, interval model.Duration) (passed int, err error) {
	data, err := load(c.InputSeries, c.Interval)
	if err != nil {
		return 0, err
	}
	var problems []error
	for _, e := range c.Alerts {
		have, err := data.firing(rules, e, time.Duration(interval))
		want := slices.Clone(e.Alerts)
		for i := range want {
			want[i].Labels = maps.Clone(want[i].Labels)
			if want[i].Labels == nil {
				want[i].Labels = map[string]string{}
			}
			want[i].Labels[labels.AlertName] = e.Alertname
		}
		sortAlerts(want)
		switch {
		case err != nil:
			problems = append(problems, err)
		case len(have)+len(want) > 0 && !reflect.DeepEqual(have, want):
			problems = append(problems, fmt.Errorf("%s at %s:\n  want %v\n  have %v", e.Alertname, e.EvalTime, want, have))
		default:
			passed++
		}
	}
	return passed, errors.Join(problems...)
}

// firing evaluates the rule of an expectation until its time, and returns the alerts that fire then.
func (d series) firing(rules []rulefmt.Rule, e expectation, interval time.Duration) ([]expected, error) {
	i := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == e.Alertname })
	if i < 0 {
		return nil, fmt.Errorf("there is no alert %q", e.Alertname)
	}
	rule := rules[i]
	since := map[string]time.Duration{} // since when the expression has returned a series without a gap
	var firing []expected
	for at := time.Duration(0); at <= time.Duration(e.EvalTime); at += interval {
		vector, err := d.query(rule.Expr, at)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", rule.Alert, at, err)
		}
		active := map[string]time.Duration{}
		firing = nil
		for _, sample := range vector {
			key := sample.Metric.String()
			begin, before := since[key]
			if !before {
				begin = at
			}
			active[key] = begin
			if at-begin < time.Duration(rule.For) {
				continue
			}
			alert, err := expand(rule, sample, at)
			if err != nil {
				return nil, err
			}
			firing = append(firing, alert)
		}
		since = active
	}
	sortAlerts(firing)
	return firing, nil
}

// expand returns the labels and annotations of an alert.
func expand(rule rulefmt.Rule, sample promql.Sample, at time.Duration) (expected, error) {
	metric := sample.Metric.Map()
	delete(metric, model.MetricNameLabel)
	data := template.AlertTemplateData(metric, nil, "", sample)
	texts := func(of map[string]string) (map[string]string, error) {
		all := map[string]string{}
		for name, text := range of {
			expander := template.NewTemplateExpander(context.Background(), variables+text, rule.Alert, data, model.Time(at.Milliseconds()), nil, &url.URL{}, nil)
			value, err := expander.Expand()
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", rule.Alert, name, err)
			}
			all[name] = value
		}
		return all, nil
	}
	own, labelErr := texts(rule.Labels)
	annotations, annotationErr := texts(rule.Annotations)
	maps.Copy(metric, own)
	metric[labels.AlertName] = rule.Alert
	return expected{Labels: metric, Annotations: annotations}, errors.Join(labelErr, annotationErr)
}

func sortAlerts(alerts []expected) {
	slices.SortFunc(alerts, func(a, b expected) int { return cmp.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) })
}
