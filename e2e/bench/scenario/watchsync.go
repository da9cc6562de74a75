package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

// watched is what is in the caches, and the field that one of them does without.
const (
	watched = "networking.k8s.io/v1/ingresses"
	ignored = "metadata.managedFields"
)

// cache is a program that fills one, and what it took each time.
type cache struct {
	program string
	args    []string
	// profiles says that it can write one.
	profiles bool
	fillings []filling
}

// watchSync: how long it takes until a watch.Bulk has every object of a resource, and what memory it holds then. The
// floor is a dynamic informer without anything around it.
func watchSync(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := createIngresses(ctx, e); err != nil {
		return nil, err
	}
	kubeconfig, err := e.floors.kubeconfig("informer")
	if err != nil {
		return nil, err
	}
	bulk := filepath.Join("e2e", "bench", "bulk")
	floor := &cache{program: filepath.Join("e2e", "bench", "floor", "informer"), args: []string{kubeconfig, watched}}
	whole := &cache{program: bulk, profiles: true, args: []string{kubeconfig, watched}}
	pruned := &cache{program: bulk, args: []string{"-ignore", ignored, kubeconfig, watched}}
	if err := fillInTurn(ctx, e, floor, whole, pruned); err != nil {
		return nil, err
	}
	missed := 0
	for _, c := range []*cache{floor, whole, pruned} {
		for _, f := range c.fillings {
			missed += max(e.Objects-f.objects, f.objects-e.Objects)
		}
	}
	const most, less = 1.3, 0.97
	figures := []figure.Figure{
		whole.time(fmt.Sprintf("%d objects, initial sync", e.Objects), floor),
		whole.processors("its processor time", floor),
		whole.memory("most memory until then", floor, mostMemory, most),
		whole.memory("memory held", floor, heldMemory, most),
		pruned.time("without "+ignored+": initial sync", floor),
		pruned.memory("without it: most memory", floor, mostMemory, less),
		pruned.memory("without it: memory held", floor, heldMemory, less),
	}
	return append(figures, whole.perObject(floor, e.Objects), figure.Figure{
		Name: "missed or doubled", Value: float64(missed), Budget: figure.Exactly(0),
		Note: fmt.Sprintf("counted: a bare informer %v, a watch %v, without %s %v", floor.counts(), whole.counts(), ignored, pruned.counts()),
	}), nil
}

// counts are the numbers of objects of all fillings.
func (c *cache) counts() (all []int) {
	for _, f := range c.fillings {
		all = append(all, f.objects)
	}
	return all
}

// fillInTurn has every program fill its cache, again and again, each time another one first. One filling before that warms
// the API server.
func fillInTurn(ctx context.Context, e *environment, caches ...*cache) error {
	if _, err := filled(ctx, caches[0].program, caches[0].args...); err != nil {
		return err
	}
	for round := range e.Syncs {
		for turn := range caches {
			c := caches[(round+turn)%len(caches)]
			args := c.args
			if e.profiler.enabled() && c.profiles {
				args = append([]string{"-cpuprofile", filepath.Join(e.profiler.directory, e.name+"-cpu.pprof")}, args...)
			}
			found, err := filled(ctx, c.program, args...)
			if err != nil {
				return err
			}
			c.fillings = append(c.fillings, found)
		}
	}
	return nil
}

func mostMemory(f filling) int64 { return f.peak }
func heldMemory(f filling) int64 { return f.held }

// median is that of one number of all fillings.
func (c *cache) median(of func(filling) int64) int64 {
	var all []int64
	for _, f := range c.fillings {
		all = append(all, of(f))
	}
	return median(all)
}

func (c *cache) time(name string, floor *cache) figure.Figure {
	took := func(f filling) int64 { return int64(f.took) }
	var all, least []time.Duration
	for i, f := range c.fillings {
		all, least = append(all, f.took), append(least, floor.fillings[i].took)
	}
	return figure.Figure{
		Name: name, Unit: figure.Seconds, Budget: figure.Times(1.3),
		Value: time.Duration(c.median(took)).Seconds(), Floor: time.Duration(floor.median(took)).Seconds(),
		Note: fmt.Sprintf("medians of %d: %s, a bare informer %s; each in a process of its own", len(all), rounded(all), rounded(least)),
	}
}

func (c *cache) processors(name string, floor *cache) figure.Figure {
	used := func(f filling) int64 { return int64(f.used) }
	return figure.Figure{
		Name: name, Unit: figure.Seconds,
		Value: time.Duration(c.median(used)).Seconds(), Floor: time.Duration(floor.median(used)).Seconds(),
	}
}

func (c *cache) memory(name string, floor *cache, of func(filling) int64, limit float64) figure.Figure {
	return figure.Figure{
		Name: name, Unit: figure.Megabytes, Budget: figure.Times(limit),
		Value: megabytes(c.median(of)), Floor: megabytes(floor.median(of)),
	}
}

// perObject is what remains in memory because of the index.
func (c *cache) perObject(floor *cache, objects int) figure.Figure {
	return figure.Figure{
		Name: "memory held more than by a bare informer, per object", Unit: figure.Bytes, Budget: figure.AtMost(1000),
		Value: float64(c.median(heldMemory)-floor.median(heldMemory)) / float64(objects),
	}
}

// createIngresses creates what is to be watched: objects of the usual size, in some namespaces.
func createIngresses(ctx context.Context, e *environment) error {
	const namespaces = 20
	for i := range namespaces {
		if err := e.createNamespace(ctx, numbered(e.name, i)); err != nil {
			return err
		}
	}
	began := time.Now()
	err := parallel(ctx, e.Objects, func(ctx context.Context, i int) error {
		return e.Create(ctx, ingress(numbered(e.name, i%namespaces), numbered("web", i)))
	})
	e.say("%d objects created in %s", e.Objects, time.Since(began).Round(time.Second))
	return err
}

// ingress is about 2 kB of JSON with its managed fields.
func ingress(namespace, name string) *networkingv1.Ingress {
	const hosts = 4
	class, prefix := "nginx", networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Number: 80}},
	}
	var rules []networkingv1.IngressRule
	for i := range hosts {
		paths := []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: backend}}
		rules = append(rules, networkingv1.IngressRule{
			Host:             fmt.Sprintf("%s.h%d.example", name, i),
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}},
		})
	}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "bench"},
			Annotations: map[string]string{"example.com/owner": "team-a"},
		},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: rules},
	}
}
