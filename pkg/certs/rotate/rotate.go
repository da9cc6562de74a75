// Package rotate keeps the self-managed certificates of the webhook: it reads the Secret and the webhook configuration, writes what
// package certs decides, and holds the certificate that this replica serves.
//
// It runs on every replica from the start. Which replica writes is decided by the API server: an update of an older version, and
// the creation of a Secret that exists, are conflicts, after which the replica reads and decides again.
package rotate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/certs"
	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
)

// Writes have a limit: another writer may revert each. A rotation of the CA is five.
const (
	writesPerSecond = 1
	writesAtOnce    = 20
)

// The pauses after a failure, the shortest also after a conflict.
const shortestPause, longestPause = 200 * time.Millisecond, 30 * time.Second

// Options say what is kept where.
type Options struct {
	// Config leads to the API server, HTTPClient is used for it.
	Config     *rest.Config
	HTTPClient *http.Client
	// Namespace and Secret name the Secret; WebhookConfiguration is the name of the MutatingWebhookConfiguration.
	Namespace, Secret, WebhookConfiguration string
	Policy                                  certs.Policy
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
	Log     logr.Logger
	// Random is where keys come from; nil is crypto/rand.Reader.
	Random io.Reader
}

// Rotator keeps the certificates. Its methods are safe for concurrent use.
type Rotator struct {
	options Options
	api     api
	clock   *clock
	limit   flowcontrol.RateLimiter
	changed chan struct{} // holds one signal that something has changed
	state   atomic.Pointer[state]
	logged  string // the failure that was logged last; only the goroutine of Start has it
	// since says when each CA was first seen in all caBundles, by the clock of this process, which does not jump between two readings.
	since map[certs.Fingerprint]time.Time
	// last is the content that was served last. Only the goroutine of Start has it.
	last certs.Data
}

// state is what a replica knows and serves.
type state struct {
	serving *tls.Certificate
	// read is false until both objects were read.
	read       bool
	bundles    [][]byte
	caNotAfter time.Time
	failure    error
}

// New makes a Rotator. It does no I/O; Start does.
func New(o Options) (*Rotator, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	o.Log = o.Log.WithValues("namespace", o.Namespace, "secret", o.Secret, "webhookConfiguration", o.WebhookConfiguration)
	next := o.HTTPClient.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	clock := &clock{next: next}
	client := *o.HTTPClient
	client.Transport = clock
	api, err := newAPI(o, &client)
	if err != nil {
		return nil, err
	}
	r := &Rotator{
		options: o, api: api, clock: clock, changed: make(chan struct{}, 1),
		limit: flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, writesAtOnce),
		since: map[certs.Fingerprint]time.Time{},
	}
	r.state.Store(&state{})
	r.register(o.Metrics)
	return r, nil
}

// Start keeps the certificates until the context ends. Failures are retried until then.
func (r *Rotator) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.followSecret(ctx) })
	running.Go(func() { r.followRegistration(ctx) })
	pause := shortestPause
	for ctx.Err() == nil {
		wait, err := r.step(ctx)
		switch {
		case err == nil:
			pause, r.logged = shortestPause, ""
		case conflict(err):
			wait = shortestPause
		default:
			r.report(ctx, err)
			wait, pause = pause, min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-time.After(wait):
		}
	}
	return nil
}

// conflict reports whether another replica was faster.
func conflict(err error) bool {
	return (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) && !apianswer.Denied(err)
}

// report logs a failure once, and keeps it for the readiness.
func (r *Rotator) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	now := *r.state.Load()
	now.failure = err
	r.state.Store(&now)
	if listwatch.IsNewCause(&r.logged, err) {
		r.options.Log.Error(err, "cannot renew or publish the webhook's certificates; retrying")
	}
}

// step reads, decides and writes once. It returns when the next step is due.
func (r *Rotator) step(ctx context.Context) (time.Duration, error) {
	// The caBundle is read before the Secret: see certs.Input.
	registration, secret := &admissionv1.MutatingWebhookConfiguration{}, &corev1.Secret{}
	if exists, err := found(r.api.registration.get(ctx, registration)); err != nil {
		return 0, fmt.Errorf("read the webhook configuration %s: %w", r.options.WebhookConfiguration, err)
	} else if !exists {
		registration = nil
	}
	if exists, err := found(r.api.secret.get(ctx, secret)); err != nil {
		return 0, fmt.Errorf("read the Secret of the certificates: %w", err)
	} else if !exists {
		secret = nil
	}
	input := r.input(registration, secret)
	decision, err := r.options.Policy.Decide(input, r.options.Random)
	if err != nil {
		return 0, err
	}
	r.serve(input, decision)
	written, err := r.write(ctx, decision, registration, secret)
	if err != nil || written {
		return 0, err
	}
	return decision.Wait, nil
}

// found reports whether an object exists, according to the error of its read.
func found(err error) (bool, error) {
	if apianswer.NotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// SharedBundle is the annotation of a webhook configuration whose caBundles have CAs that pod-reloader does not know, if it is "true": the
// chart sets it with a given certificate.
const SharedBundle = "pod-reloader.cs.sap.com/shared-ca-bundle"

// shared reports whether the caBundles have CAs of others: by SharedBundle, or by one of the annotations that ask the CA injector of
// cert-manager for them: https://cert-manager.io/docs/concepts/ca-injector/
func shared(registration *admissionv1.MutatingWebhookConfiguration) bool {
	for key := range registration.Annotations {
		if strings.HasPrefix(key, "cert-manager.io/inject-") {
			return true
		}
	}
	return registration.Annotations[SharedBundle] == "true"
}

// input is what the decision is made of.
func (r *Rotator) input(registration *admissionv1.MutatingWebhookConfiguration, secret *corev1.Secret) certs.Input {
	s := certs.Input{Last: r.last, Now: r.clock.now(), TrustedFor: map[certs.Fingerprint]time.Duration{}}
	if registration != nil {
		s.Shared = shared(registration)
		for _, w := range registration.Webhooks {
			s.Bundles = append(s.Bundles, w.ClientConfig.CABundle)
		}
	}
	if secret != nil {
		if s.Data = secret.Data; s.Data == nil {
			s.Data = certs.Data{}
		}
	}
	now := time.Now()
	for _, ca := range certs.InAll(s.Bundles) {
		id := certs.Identify(ca)
		if _, seen := r.since[id]; !seen {
			r.since[id] = now
		}
		s.TrustedFor[id] = now.Sub(r.since[id])
	}
	maps.DeleteFunc(r.since, func(id certs.Fingerprint, _ time.Time) bool {
		_, still := s.TrustedFor[id]
		return !still
	})
	return s
}

// serve takes the certificate of the Secret if it is the better one.
func (r *Rotator) serve(s certs.Input, d certs.Decision) {
	before := r.state.Load()
	stored := s.Data.Leaf()
	now := &state{
		serving: r.options.Policy.Serve(before.serving, stored, s.Bundles, s.Now),
		read:    true, bundles: s.Bundles, caNotAfter: before.caNotAfter,
	}
	if ca := s.Data.CA(); ca != nil {
		now.caNotAfter = ca.NotAfter
	}
	r.state.Store(now)
	if stored == nil || now.serving != stored {
		return
	}
	if before.serving == nil || !before.serving.Leaf.Equal(stored.Leaf) {
		r.options.Log.Info("serving a new certificate", "notAfter", stored.Leaf.NotAfter.Format(time.RFC3339),
			"serial", stored.Leaf.SerialNumber.Text(16))
	}
	if d.Step != certs.Restore && d.Step != certs.Establish {
		r.last = s.Data
	}
}

// write does what was decided, and reports whether that was anything. The two writes do not wait for each other: without the
// permission for one, the other still helps.
func (r *Rotator) write(
	ctx context.Context, d certs.Decision, registration *admissionv1.MutatingWebhookConfiguration, secret *corev1.Secret,
) (bool, error) {
	var failures []error
	if d.Bundle != nil {
		if err := r.limit.Wait(ctx); err != nil {
			return false, err
		}
		if err := r.api.trust(ctx, registration, d.Bundle); err != nil {
			failures = append(failures, fmt.Errorf("set the caBundle of the webhook configuration %s: %w", r.options.WebhookConfiguration, err))
		} else {
			r.options.Log.Info("set the caBundle")
		}
	}
	if d.Step != certs.None {
		if err := r.limit.Wait(ctx); err != nil {
			return false, err
		}
		if err := r.api.save(ctx, secret, d.Data); err != nil {
			failures = append(failures, fmt.Errorf("write the Secret of the certificates (%s, because %s): %w", d.Step, d.Reason, err))
		} else {
			r.options.Log.Info("wrote the certificates", "step", string(d.Step), "reason", d.Reason)
		}
	}
	return d.Bundle != nil || d.Step != certs.None, errors.Join(failures...)
}
