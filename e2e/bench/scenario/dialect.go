package scenario

import (
	"context"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

// mark is the annotation of Reloader that makes a search find an object.
const mark = `{"metadata":{"annotations":{"reloader.stakater.com/match":"true"}}}`

// dialect: the requests of a reload of workloads with the annotations of Stakater's Reloader.
func dialect(ctx context.Context, e *environment) ([]figure.Figure, error) {
	t, err := newTriples(ctx, e, inTurn)
	if err != nil {
		return nil, err
	}
	err = parallel(ctx, len(t.workloads), func(ctx context.Context, i int) error {
		for name, object := range map[string]client.Object{
			numbered("changing", i): &corev1.ConfigMap{}, numbered("other", i): &corev1.ConfigMap{}, numbered("secret", i): &corev1.Secret{},
		} {
			if err := e.merge(ctx, object, name, mark); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	requests, err := t.reloadRequests(ctx, 1+3+1)
	if err != nil {
		return nil, err
	}
	return append(requests, missedOrDoubled(e.unequal(t.workloads, 2))), nil
}

// inTurn returns the annotations of Reloader that select what a workload reads: all of it, by expressions, or by marks.
func inTurn(i int, d deployment) map[string]string {
	switch i % 3 {
	case 0:
		return map[string]string{"reloader.stakater.com/auto": "true"}
	case 1:
		return map[string]string{
			"configmap.reloader.stakater.com/reload": "(" + strings.Join(d.configMaps, "|") + ")",
			"secret.reloader.stakater.com/reload":    "(" + strings.Join(d.secrets, "|") + ")",
		}
	default:
		return map[string]string{"reloader.stakater.com/search": "true"}
	}
}

// resolving: what a start does with 1,000 workloads that have Reloader's annotations before it compares anything.
func resolving(ctx context.Context, e *environment) ([]figure.Figure, error) {
	const lists, patterns, matches = "Start/lists", "Start/patterns", "Start/matches"
	found, err := goBench(ctx, path.Join("pkg", "reload", "index"), "^BenchmarkStart$", e.StartTime, e.BenchTimes)
	if err != nil {
		return nil, err
	}
	if err := found.require(lists, patterns, matches); err != nil {
		return nil, err
	}
	var figures []figure.Figure
	for _, benchmark := range []string{patterns, matches} {
		figures = append(figures, figure.Figure{
			Name: "1,000 workloads at start: " + path.Base(benchmark), Unit: figure.Nanoseconds,
			Value: found.median(benchmark, "ns/op"), Floor: found.median(lists, "ns/op"), Budget: figure.Times(1.5),
			Note: "to read and resolve what they track; the floor is with lists of the same names",
		})
	}
	return figures, nil
}
