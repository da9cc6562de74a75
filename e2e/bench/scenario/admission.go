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
	"github.com/pod-reloader/pod-reloader/e2e/bench/sample"
)

// admission: how long the webhook takes for a write, at a fixed rate whatever it takes. Every review is of the dear kind:
// the template changes, so that the configuration is read live.
func admission(ctx context.Context, w *world) ([]figure.Figure, error) {
	watcher, err := w.enter(ctx)
	if err != nil {
		return nil, err
	}
	watcher.Stop()
	reviews, err := w.reviews(ctx)
	if err != nil {
		return nil, err
	}
	noophook, err := w.startNoophook(ctx)
	if err != nil {
		return nil, err
	}
	var ours, floor []answers
	err = w.profiled(ctx, time.Duration(w.Loads)*w.Load, func() error {
		for range w.Loads {
			least, err := w.load(ctx, noophook, reviews)
			early := slices.DeleteFunc(least.failures, func(err error) bool { return errors.Is(err, errLate) })
			if err := errors.Join(append(early, err)...); err != nil {
				return err
			}
			found, err := w.load(ctx, w.in.Replicas()[0].WebhookAddress, reviews)
			if err != nil {
				return err
			}
			ours, floor = append(ours, found), append(floor, least)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf(" at %d reviews/s", w.Rate)
	p99 := percentiles(ours, 99)
	var all answers
	for _, found := range ours {
		all.took = append(all.took, found.took...)
		all.unpatched += found.unpatched
		all.failures = append(all.failures, found.failures...)
	}
	return []figure.Figure{
		{
			Name: "p50" + at, Unit: figure.Milliseconds,
			Value: sample.Median(percentiles(ours, 50)), Floor: sample.Median(percentiles(floor, 50)),
		},
		{
			Name: "p99" + at, Unit: figure.Milliseconds, Value: sample.Median(p99), Floor: sample.Median(percentiles(floor, 99)),
			Budget: figure.AtMost(10),
			Note: fmt.Sprintf("median of %d times %d reviews with 2 Refs read live, from the moment each was due: %.1f; "+
				"the floor is a webhook that only answers", len(ours), len(ours[0].took), p99),
		},
		{
			Name: "the slowest review" + at, Unit: figure.Milliseconds,
			Value: milliseconds(slices.Max(all.took)), Budget: figure.AtMost(milliseconds(readDeadline)), Note: all.failure(),
		},
		{
			Name: "reviews without a patch", Value: float64(all.unpatched), Budget: figure.Exactly(0),
			Note: "those that had the webhook's 2 s for reading left",
		},
	}, nil
}

// percentiles returns the p-th percentile of each load, in milliseconds.
func percentiles(loads []answers, p float64) []float64 {
	found := make([]float64, 0, len(loads))
	for _, load := range loads {
		found = append(found, milliseconds(sample.Percentile(load.took, p)))
	}
	return found
}

// reviews are the bodies of admission reviews for updates of stored workloads.
func (w *world) reviews(ctx context.Context) ([][]byte, error) {
	const workloads = 50
	reviews := make([][]byte, workloads)
	return reviews, parallel(ctx, workloads, func(ctx context.Context, i int) error {
		config, secret := numbered("config", i), numbered("secret", i)
		if err := errors.Join(w.configMap(ctx, config), w.secret(ctx, secret)); err != nil {
			return err
		}
		d := deployment{name: numbered("web", i), configMaps: []string{config}, secrets: []string{secret}}
		if _, err := w.deploy(ctx, d); err != nil {
			return err
		}
		stored := &appsv1.Deployment{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: w.name, Name: d.name}, stored); err != nil {
			return fmt.Errorf("read %s: %w", d.name, err)
		}
		stored.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		// The stamp is then another one, so that every answer has a patch.
		if err := w.change(ctx, config, 1); err != nil {
			return err
		}
		var err error
		reviews[i], err = review(stored)
		return err
	})
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

// load sends reviews at a fixed rate and does not wait for one answer before the next: a webhook that stalls makes all
// that follow late, and their time counts from when they were due.
func (w *world) load(ctx context.Context, address string, reviews [][]byte) (answers, error) {
	if err := w.idle(ctx); err != nil {
		return answers{}, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.cp.CA())
	http2 := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64,
	}
	defer http2.CloseIdleConnections()
	ask := asker{&http.Client{Transport: http2, Timeout: 5 * time.Second}, "https://" + address + "/mutate?timeout=3s"}
	// One of each before it counts: connections and digests.
	for _, body := range reviews {
		if _, err := ask.do(ctx, body); err != nil && !errors.Is(err, errLate) {
			return answers{}, err
		}
	}
	// Those of the first second do not count: under load more connections are opened than one after the other.
	warming := w.Rate
	count := warming + int(w.Load.Seconds()*float64(w.Rate))
	var found answers
	var mutex sync.Mutex
	var running sync.WaitGroup
	started := time.Now()
	for n := range count {
		due := started.Add(time.Duration(n) * time.Second / time.Duration(w.Rate))
		if err := pause(ctx, time.Until(due)); err != nil {
			return answers{}, err
		}
		running.Go(func() {
			patched, err := ask.do(ctx, reviews[n%len(reviews)])
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
