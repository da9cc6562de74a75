package scenario

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

// admission: how long the webhook takes for a write, at a fixed rate whatever it takes. Every review is of the dear kind:
// the template changes, so that the configuration is read live.
func admission(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := e.createNamespace(ctx, e.name); err != nil {
		return nil, err
	}
	t := &targets{environment: e}
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	err := e.profiler.during(ctx, e.name, time.Duration(e.Loads)*e.Load, func() error {
		for range e.Loads {
			for _, target := range t.all() {
				found, err := t.load(ctx, target)
				if err != nil {
					return err
				}
				target.found = append(target.found, found)
			}
		}
		return nil
	})
	if err == nil {
		err = errors.Join(t.noop.early(), t.live.early())
	}
	if err != nil {
		return nil, err
	}
	return t.figures(), nil
}

// target is a webhook that reviews are sent to.
type target struct {
	address string
	reviews [][]byte
	// found are the answers of each load.
	found []answers
}

// early returns the failures that were not for lack of time.
func (t *target) early() error {
	var failures []error
	for _, found := range t.found {
		failures = append(failures, slices.DeleteFunc(found.failures, func(err error) bool { return errors.Is(err, errLate) })...)
	}
	return errors.Join(failures...)
}

// p is the median of the p-th percentiles of the loads, in milliseconds.
func (t *target) p(p float64) float64 { return median(percentiles(t.found, p)) }

// targets are pod-reloader and what it is compared with: a webhook that only answers, and one that also reads a ConfigMap's metadata live.
type targets struct {
	*environment

	ours, noop, live *target
}

// all are the targets, in the order in which each load is sent.
func (t *targets) all() []*target { return []*target{t.noop, t.live, t.ours} }

// start creates the workloads that reviews are about, and starts what pod-reloader is compared with.
func (t *targets) start(ctx context.Context) error {
	stored, err := t.reviewed(ctx)
	if err != nil {
		return err
	}
	plain, poking, err := reviews(stored)
	if err != nil {
		return err
	}
	noophook, err := t.floors.startWebhook(ctx, "noophook")
	if err != nil {
		return err
	}
	if err := t.createConfigMap(ctx, "live"); err != nil {
		return err
	}
	kubeconfig, err := t.floors.kubeconfig("livehook")
	if err != nil {
		return err
	}
	live, err := t.floors.startWebhook(ctx, "livehook", kubeconfig, t.name, "live")
	if err != nil {
		return err
	}
	t.ours = &target{address: t.installation.Replicas()[0].WebhookAddress, reviews: plain}
	t.noop = &target{address: noophook, reviews: plain}
	t.live = &target{address: live, reviews: poking}
	return nil
}

// figures are what the loads have shown.
func (t *targets) figures() []figure.Figure {
	at := fmt.Sprintf(" at %d reviews/s", t.Rate)
	var all answers
	for _, found := range t.ours.found {
		all.took = append(all.took, found.took...)
		all.unpatched += found.unpatched
		all.failures = append(all.failures, found.failures...)
	}
	return []figure.Figure{
		{Name: "p50" + at, Unit: figure.Milliseconds, Value: t.ours.p(50), Floor: t.noop.p(50)},
		{Name: "p50, over a webhook with one live read", Unit: figure.Milliseconds, Value: t.ours.p(50), Floor: t.live.p(50)},
		{
			Name: "p99" + at, Unit: figure.Milliseconds, Value: t.ours.p(99), Floor: t.noop.p(99),
			Budget: figure.AtMost(10),
			Note: fmt.Sprintf("median of %d times %d reviews with 2 Refs read live, from the moment each was due: %.1f; "+
				"the floor is a webhook that only answers", len(t.ours.found), len(t.ours.found[0].took), percentiles(t.ours.found, 99)),
		},
		{
			Name: "p99, over a webhook with one live read", Unit: figure.Milliseconds, Value: t.ours.p(99), Floor: t.live.p(99),
			Note: fmt.Sprintf("the same for that webhook: %.1f", percentiles(t.live.found, 99)),
		},
		{
			Name: "the slowest review" + at, Unit: figure.Milliseconds,
			Value: milliseconds(slices.Max(all.took)), Budget: figure.AtMost(milliseconds(readDeadline)), Note: all.failure(),
		},
		{
			Name: "reviews without a patch", Value: float64(all.unpatched), Budget: figure.Exactly(0),
			Note: "those that had the webhook's 2 s for reading left",
		},
	}
}

// percentiles returns the p-th percentile of each load, in milliseconds.
func percentiles(loads []answers, p float64) []float64 {
	found := make([]float64, 0, len(loads))
	for _, load := range loads {
		found = append(found, milliseconds(percentile(load.took, p)))
	}
	return found
}

// reviewed are the stored workloads that reviews are about.
func (t *targets) reviewed(ctx context.Context) ([]*appsv1.Deployment, error) {
	const workloads = 50
	stored := make([]*appsv1.Deployment, workloads)
	return stored, parallel(ctx, workloads, func(ctx context.Context, i int) error {
		config := numbered("config", i)
		d := deployment{name: numbered("web", i), configMaps: []string{config}, secrets: []string{numbered("secret", i)}}
		if _, err := t.deployWithConfig(ctx, d); err != nil {
			return err
		}
		stored[i] = &appsv1.Deployment{}
		if err := t.Get(ctx, client.ObjectKey{Namespace: t.name, Name: d.name}, stored[i]); err != nil {
			return fmt.Errorf("read %s: %w", d.name, err)
		}
		stored[i].SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		// The stamp is then another one, so that every answer has a patch.
		return t.change(ctx, config, 1)
	})
}

// reviews are the bodies of admission reviews for updates of the workloads, and the same with the poke that the livehook reads for.
func reviews(stored []*appsv1.Deployment) (plain, poking [][]byte, err error) {
	for _, workload := range stored {
		one, err := review(workload)
		if err != nil {
			return nil, nil, err
		}
		workload = workload.DeepCopy()
		metav1.SetMetaDataAnnotation(&workload.ObjectMeta, "poke", "1")
		other, err := review(workload)
		if err != nil {
			return nil, nil, err
		}
		plain, poking = append(plain, one), append(poking, other)
	}
	return plain, poking, nil
}

// review is what the API server sends when a user sets another image.
func review(stored *appsv1.Deployment) ([]byte, error) {
	after := stored.DeepCopy()
	after.Spec.Template.Spec.Containers[0].Image = "example.com/app:2"
	before, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode a Deployment: %w", err)
	}
	now, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encode a Deployment: %w", err)
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("review-" + stored.Name), Operation: admissionv1.Update, Namespace: stored.Namespace, Name: stored.Name,
			Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Object:   runtime.RawExtension{Raw: now}, OldObject: runtime.RawExtension{Raw: before},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a review: %w", err)
	}
	return body, nil
}

// readDeadline is how long the webhook reads for one review. It lets a write pass without a stamp after that.
const readDeadline = 2 * time.Second

// errLate says that a review had no patch because the time for it was over. That depends on the machine, unlike a patch that is
// missing from an answer in time.
var errLate = errors.New("late")

// answers are what came of a load: unpatched are the reviews that had no patch though there was time, failures those and the late ones.
type answers struct {
	took      []time.Duration
	unpatched int
	failures  []error
}

// failure is the first failure and their number.
func (a answers) failure() string {
	if len(a.failures) == 0 {
		return ""
	}
	return fmt.Sprintf("%d failures, the first: %v", len(a.failures), a.failures[0])
}

// load sends a target its reviews at a fixed rate and does not wait for one answer before the next: a webhook that stalls makes all
// that follow late, and their time counts from when they were due.
func (t *targets) load(ctx context.Context, to *target) (answers, error) {
	if err := t.awaitIdle(ctx); err != nil {
		return answers{}, err
	}
	ask := newAsker(to.address, t.cp.CA())
	defer ask.client.CloseIdleConnections()
	// One of each before it counts: connections and digests.
	for _, body := range to.reviews {
		if _, err := ask.do(ctx, body); err != nil && !errors.Is(err, errLate) {
			return answers{}, err
		}
	}
	// Those of the first second do not count: under load more connections are opened than one after the other.
	warming := t.Rate
	count := warming + int(t.Load.Seconds()*float64(t.Rate))
	var found answers
	var mutex sync.Mutex
	var running sync.WaitGroup
	started := time.Now()
	for n := range count {
		due := started.Add(time.Duration(n) * time.Second / time.Duration(t.Rate))
		if err := pause(ctx, time.Until(due)); err != nil {
			return answers{}, err
		}
		running.Go(func() {
			patched, err := ask.do(ctx, to.reviews[n%len(to.reviews)])
			took := time.Since(due)
			mutex.Lock()
			defer mutex.Unlock()
			if n >= warming {
				found.took = append(found.took, took)
			}
			if !patched && !errors.Is(err, errLate) {
				found.unpatched++
			}
			if err != nil {
				found.failures = append(found.failures, err)
			}
		})
	}
	running.Wait()
	return found, nil
}

// asker sends reviews to a webhook.
type asker struct {
	client *http.Client
	url    string
}

func newAsker(address string, ca []byte) asker {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	http2 := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
	}
	return asker{&http.Client{Transport: http2, Timeout: 5 * time.Second}, "https://" + address + "/mutate?timeout=3s"}
}

// do reports whether the answer had a patch. An answer with a warning, or that is not "allowed", is an error, and it is [errLate] where the
// webhook had no time left.
func (a asker) do(ctx context.Context, body []byte) (patched bool, err error) {
	sent := time.Now()
	defer func() {
		if err != nil && time.Since(sent) >= readDeadline {
			err = fmt.Errorf("%w: %w", errLate, err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return false, fmt.Errorf("ask the webhook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return false, fmt.Errorf("read the webhook's answer: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(content, &review); err != nil || review.Response == nil {
		return false, fmt.Errorf("the webhook answered %s %s", strconv.Itoa(response.StatusCode), content)
	}
	if !review.Response.Allowed || len(review.Response.Warnings) > 0 {
		return false, fmt.Errorf("the webhook answered %s", content)
	}
	return len(review.Response.Patch) > 0, nil
}
