package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// world is the configuration that a handler under test sees.
type world struct {
	ring digest.Ring
	// keys is the stored ring, where the one in memory is old. It is read with refresh, where that is set.
	keys    digest.Ring
	refresh func(ctx context.Context) (time.Time, error)
	// refreshes counts the calls of Refresh.
	refreshes atomic.Int64
	reads     atomic.Int64
	// fail is returned by reads, hang makes them wait for their deadline, crash makes them panic.
	fail        error
	hang, crash bool
	// failOne is an object that cannot be read.
	failOne reference.Ref
	// before, if set, is called before a read.
	before func(ctx context.Context, namespace string)
	// learn, if set, reads annotations; the objects of most tests are listed.
	learn func(refs []reference.Ref) error
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{ring: digesttest.Ring(t, "\x07")}
}

func (w *world) Ring() digest.Ring { return w.ring }

// Refresh makes the stored ring the one in memory.
func (w *world) Refresh(ctx context.Context) (time.Time, error) {
	w.refreshes.Add(1)
	if w.refresh != nil {
		return w.refresh(ctx)
	}
	if !w.keys.Empty() {
		w.ring = w.keys
	}
	return now, nil
}

func (w *world) Learn(_ context.Context, _ string, refs []reference.Ref) error {
	if w.learn == nil {
		return nil
	}
	return w.learn(refs)
}

// ReadLive knows a ConfigMap app and a Secret db; all else is absent.
func (w *world) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	w.reads.Add(1)
	if w.before != nil {
		w.before(ctx, namespace)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if w.crash {
		panic("boom")
	}
	if w.fail != nil {
		return nil, w.fail
	}
	var failed error
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		if ref == w.failOne {
			failed = errors.New("no route")
			continue
		}
		meta := metav1.ObjectMeta{Namespace: namespace, Name: ref.Name}
		switch ref.String() {
		case "configmap/app":
			object := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}}
			states[ref] = digest.StateOf(digest.OfConfigMap(object), "uid-app", "11", w.ring)
		case "secret/db":
			object := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("planted")}}
			states[ref] = digest.StateOf(digest.OfSecret(object), "uid-db", "12", w.ring)
		default:
			states[ref] = digest.State{Absent: true}
		}
	}
	return states, failed
}

// now is the time of every test.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type setup struct {
	handler  *webhook.Handler
	registry *prometheus.Registry
}

func newHandler(t testing.TB, w *world, change func(*webhook.Options), log logr.Logger) setup {
	t.Helper()
	keys := annotation.DefaultKeys()
	kinds := workload.NewKinds(workload.Builtin()...)
	options := webhook.Options{
		Kinds:  func() workload.Kinds { return kinds },
		Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}},
		Now:    func() time.Time { return now },
		// No slow machine reaches it.
		Deadline: time.Hour,
	}
	if change != nil {
		change(&options)
	}
	registry := prometheus.NewRegistry()
	handler, err := webhook.New(webhook.Dependencies{State: w, Keys: w, Metrics: registry, Log: log}, options)
	require.NoError(t, err)
	return setup{handler, registry}
}

func post(handler http.Handler, body []byte) *httptest.ResponseRecorder {
	return send(handler, "192.0.2.1", bytes.NewReader(body))
}

// responseOf returns the answer to a review.
func responseOf(t testing.TB, recorder *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	response := answerOf(t, recorder)
	assert.Contains(t, recorder.Body.String(), `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",`)
	require.NotEmpty(t, response.UID, recorder.Body.String())
	return response
}

// answerOf returns the answer to anything.
func answerOf(t testing.TB, recorder *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	require.Equal(t, http.StatusOK, recorder.Code, recorder.Body.String())
	assert.Equal(t, "application/json", recorder.Header().Get("Content-Type"))
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &review))
	require.NotNil(t, review.Response)
	return review.Response
}

// decisions returns the count of one kind of decision.
func decisions(t testing.TB, s setup, rule, outcome string) int {
	t.Helper()
	families, err := s.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "pod_reloader_webhook_decisions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			values := map[string]string{}
			for _, l := range m.GetLabel() {
				values[l.GetName()] = l.GetValue()
			}
			if values["rule"] == rule && values["outcome"] == outcome {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}

func TestRequestsThatAreNotHandledStayUnchanged(t *testing.T) {
	t.Parallel()
	const annotated = `{"metadata":{"namespace":"shop","annotations":{"pod-reloader.cs.sap.com/configmaps":"app"}},"spec":{"template":{"spec":{}}}}`
	tests := map[string]struct {
		change func(*webhook.Options)
		body   string
		why    string
	}{
		"unknown kind": {body: strings.Replace(review(`"operation":"CREATE","object":`+annotated), `"Deployment"`, `"ReplicaSet"`, 1), why: "no flag selects this kind"},
		"sub-resource": {body: review(`"subResource":"scale","operation":"UPDATE","object":{"kind":"Scale"},"oldObject":{}`), why: "it is no workload"},
		"delete":       {body: review(`"operation":"DELETE","oldObject":` + annotated), why: "nothing is left to stamp"},
		"connect":      {body: review(`"operation":"CONNECT","object":{}`), why: "nothing is written"},
		"another namespace": {
			change: func(o *webhook.Options) { o.Scope = scope.Scope{Namespaces: []string{"bank"}} },
			body:   review(`"operation":"CREATE","object":` + annotated), why: "another installation's",
		},
		"another selector": {
			change: func(o *webhook.Options) { o.Scope = scope.Scope{ObjectSelector: labels.Set{"a": "b"}.AsSelector()} },
			body:   review(`"operation":"CREATE","object":` + annotated), why: "another installation's",
		},
		"control plane": {
			body: strings.Replace(review(`"operation":"CREATE","object":`+annotated), `"namespace":"shop","name"`, `"namespace":"kube-system","name"`, 1),
			why:  "the control plane's own workloads are never restarted",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newHandler(t, w, tt.change, logr.Discard())
			response := responseOf(t, post(s.handler, []byte(tt.body)))
			assert.Equal(t, &admissionv1.AdmissionResponse{UID: "u", Allowed: true, Result: &metav1.Status{Code: http.StatusOK}}, response, tt.why)
			assert.Zero(t, w.reads.Load())
			assert.Equal(t, 1, decisions(t, s, "none", "unchanged"))
		})
	}
}

func BenchmarkHandler(b *testing.B) {
	for _, name := range []string{"create", "scale", "release", "unrelated"} {
		b.Run(name, func(b *testing.B) {
			s := newHandler(b, newWorld(b), nil, logr.Discard())
			body := fixture(b, name+"/request.yaml")
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				post(s.handler, body)
			}
		})
	}
}
