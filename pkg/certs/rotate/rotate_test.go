package rotate_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
	"github.com/pod-reloader/pod-reloader/pkg/certs/rotate"
)

// patience bounds every wait.
const patience = 2 * time.Minute

var policy = certs.Policy{Names: []string{"pod-reloader.pod-reloader.svc"}, Lifetime: 90 * 24 * time.Hour, CALifetime: 5 * 365 * 24 * time.Hour}

// start starts a replica, which runs until the test ends.
func start(t *testing.T, s *server) (*rotate.Rotator, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	r, stop := startWith(t, rotate.Options{Config: s.config(), HTTPClient: &http.Client{}, Metrics: registry, Log: logr.Discard()})
	t.Cleanup(stop)
	return r, registry
}

// startWith starts a replica with a client, until stop is called.
func startWith(t *testing.T, o rotate.Options) (r *rotate.Rotator, stop func()) {
	t.Helper()
	o.Namespace, o.Secret, o.WebhookConfiguration, o.Policy = namespace, secretName, configuration, policy
	r, err := rotate.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	return r, func() {
		cancel()
		assert.NoError(t, <-ended)
	}
}

func awaitValid(t *testing.T, r *rotate.Rotator) {
	t.Helper()
	require.Eventually(t, func() bool { return r.Valid() == nil }, patience, 10*time.Millisecond)
}

// awaitError waits until the replica is not ready for a reason.
func awaitError(t *testing.T, r *rotate.Rotator, reason string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.ErrorContains(c, r.Valid(), reason) }, patience, 10*time.Millisecond)
}

// values are the metrics by name.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		all[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return all
}

func TestReplicasThatStartAtOnceHaveOneCA(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var replicas []*rotate.Rotator
	for range 5 {
		r, _ := start(t, s)
		replicas = append(replicas, r)
	}
	for _, r := range replicas {
		awaitValid(t, r)
	}
	s.do(func() {
		data := certs.Data(s.secret.Data)
		for _, w := range s.registration.Webhooks {
			all := certs.InAll([][]byte{w.ClientConfig.CABundle})
			if assert.Len(t, all, 1, w.Name) {
				assert.True(t, all[0].Equal(data.CA()), "%s trusts the CA of the Secret", w.Name)
			}
		}
		for _, r := range replicas {
			pair, err := r.Get(nil)
			if assert.NoError(t, err) {
				assert.True(t, pair.Leaf.Equal(data.Leaf().Leaf), "the replica serves the certificate of the Secret")
				assert.Equal(t, pair.Leaf.NotAfter, r.NotAfter())
			}
		}
	})
}

func TestNotReadyUntilTrusted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.refuse[http.MethodPatch] = true
	r, registry := start(t, s)
	awaitError(t, r, "the caBundle of the webhook configuration pod-reloader does not trust the certificate: set the caBundle")
	assert.InDelta(t, 0, values(t, registry)["pod_reloader_certificate_trusted"], 0)
	_, err := r.Get(nil)
	require.NoError(t, err, "it is served nevertheless")
	s.do(func() { s.refuse[http.MethodPatch] = false })
	awaitValid(t, r)
	got := values(t, registry)
	assert.InDelta(t, 1, got["pod_reloader_certificate_trusted"], 0)
	assert.Greater(t, got["pod_reloader_certificate_authority_expiry_timestamp_seconds"], float64(time.Now().Unix()))
}

func TestNotReadyWithoutPermissions(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		http.MethodGet:  "no certificate is loaded yet: waiting for the Secret pod-reloader/pod-reloader-certificates: read the webhook configuration",
		http.MethodPost: "no certificate is loaded yet: waiting for the Secret pod-reloader/pod-reloader-certificates: write the Secret",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.refuse[method] = true
			r, _ := start(t, s)
			awaitError(t, r, want)
			assert.Zero(t, r.NotAfter())
			_, err := r.Get(nil)
			assert.Error(t, err)
		})
	}
}

func TestReadyWithoutWebhookConfiguration(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.registration = nil
	r, _ := start(t, s)
	awaitValid(t, r)
}

// A node whose clock is wrong goes by the API server's, which verifies.
func TestTimeIsThatOfTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.ahead = 1000 * 24 * time.Hour
	r, _ := start(t, s)
	require.Eventually(t, func() bool { return !r.NotAfter().IsZero() }, patience, 10*time.Millisecond)
	assert.WithinDuration(t, time.Now().Add(s.ahead+policy.Lifetime), r.NotAfter(), time.Minute)
	awaitValid(t, r)
}

// While an installation changes to certificates of others, its old replicas still run.
func TestCAsOfOthersStayWhereTheBundleIsShared(t *testing.T) {
	t.Parallel()
	other := newServer(t)
	r, _ := start(t, other)
	awaitValid(t, r)
	var foreign []byte
	other.do(func() { foreign = other.registration.Webhooks[0].ClientConfig.CABundle })
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        int
		why         string
	}{
		"the CA injector": {map[string]string{"cert-manager.io/inject-ca-from": "pod-reloader/pod-reloader"}, 2, "its own CA is added, and the other one stays"},
		"a given CA":      {map[string]string{rotate.SharedBundle: "true"}, 2, "the same"},
		"not shared":      {map[string]string{rotate.SharedBundle: "false", "example.org/a": "b"}, 1, "only its own CA is trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			r, _ := start(t, s)
			awaitValid(t, r)
			s.do(func() {
				s.registration.Annotations = tc.annotations
				for i := range s.registration.Webhooks {
					s.registration.Webhooks[i].ClientConfig.CABundle = foreign
				}
			})
			second, _ := start(t, s)
			awaitValid(t, second)
			s.do(func() {
				for _, w := range s.registration.Webhooks {
					assert.Len(t, certs.InAll([][]byte{w.ClientConfig.CABundle}), tc.want, tc.why)
				}
			})
		})
	}
}
