package rotate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/certs/rotate"
)

// startIn starts a replica in a bubble of fake time. failures counts its log lines about failures.
func startIn(t *testing.T, transport http.RoundTripper) (r *rotate.Rotator, failures *atomic.Int32, stop func()) {
	t.Helper()
	failures = &atomic.Int32{}
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, "cannot renew or publish") {
			failures.Add(1)
		}
	}, funcr.Options{})
	r, stop = startWith(t, rotate.Options{
		Config: &rest.Config{Host: "https://api"}, HTTPClient: &http.Client{Transport: transport}, Metrics: prometheus.NewRegistry(), Log: log,
	})
	return r, failures, stop
}

// pass lets fake time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// transport answers requests as a test says.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A conflict says that another replica was faster. What a webhook denies is no conflict, whatever its code is.
func TestPausesAfterAFailure(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	growing := []time.Duration{short, 2 * short, 4 * short, 8 * short, 16 * short, 32 * short, 64 * short, 128 * short, 30 * time.Second, 30 * time.Second}
	tests := map[string]struct {
		code    int
		reason  metav1.StatusReason
		message string
		pauses  []time.Duration
		logged  int32
	}{
		"forbidden":       {code: http.StatusForbidden, reason: metav1.StatusReasonForbidden, pauses: growing, logged: 1},
		"already exists":  {code: http.StatusConflict, reason: metav1.StatusReasonAlreadyExists, pauses: []time.Duration{short, short, short}},
		"version changed": {code: http.StatusConflict, reason: metav1.StatusReasonConflict, pauses: []time.Duration{short, short, short}},
		"denied": {
			code: http.StatusConflict, reason: metav1.StatusReasonConflict, message: `admission webhook "x.y" denied the request: no`,
			pauses: growing, logged: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, last := newHandler(), time.Now()
				var pauses []time.Duration
				_, failures, stop := startIn(t, transport(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodPost {
						return s.RoundTrip(r)
					}
					pauses, last = append(pauses, time.Since(last)), time.Now()
					w := httptest.NewRecorder()
					w.Header().Set("Content-Type", "application/json")
					status(w, tc.code, tc.reason, tc.message)
					return w.Result(), nil
				}))
				pass(2 * time.Minute)
				stop()
				require.Greater(t, len(pauses), len(tc.pauses))
				assert.Equal(t, tc.pauses, pauses[1:len(tc.pauses)+1])
				assert.Equal(t, tc.logged, failures.Load(), "a failure is logged once")
			})
		})
	}
}

func TestReplicaThatIsReadyLooksAgainEachHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, reads := newHandler(), atomic.Int32{}
		r, _, stop := startIn(t, transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && r.URL.Path == collection+"/"+secretName {
				reads.Add(1)
			}
			return s.RoundTrip(r)
		}))
		defer stop()
		pass(time.Minute)
		require.NoError(t, r.Valid())
		before := reads.Load()
		pass(58 * time.Minute)
		assert.Equal(t, before, reads.Load())
		pass(2 * time.Minute)
		assert.Equal(t, before+1, reads.Load())
	})
}

// What the API server trusts is written again, also where that fails for a while.
func TestReplicaRestoresTheSecret(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*server){
		"deleted":    func(s *server) { s.secret = nil },
		"without CA": func(s *server) { delete(s.secret.Data, "ca.crt") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newHandler()
				r, _, stop := startIn(t, s)
				defer stop()
				pass(time.Minute)
				require.NoError(t, r.Valid())
				stored := s.secret.DeepCopy().Data
				s.do(func() {
					damage(s)
					s.refuse[http.MethodPut], s.refuse[http.MethodPost] = true, true
				})
				pass(70 * time.Minute)
				require.NoError(t, r.Valid(), "it goes on with what it has")
				s.do(func() { s.refuse[http.MethodPut], s.refuse[http.MethodPost] = false, false })
				pass(time.Minute)
				assert.Equal(t, stored, s.secret.Data)
			})
		})
	}
}

func TestNotReadyOnceTheCertificateIsExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHandler()
		r, _, stop := startIn(t, s)
		defer stop()
		pass(time.Minute)
		require.NoError(t, r.Valid())
		s.do(func() { s.refuse[http.MethodGet] = true })
		pass(70 * time.Minute)
		require.NoError(t, r.Valid(), "it is trusted, whatever fails now")
		s.do(func() { s.ahead = policy.Lifetime })
		pass(time.Minute)
		assert.ErrorContains(t, r.Valid(), "by the API server's clock, the certificate is not valid now: it is from ")
	})
}
