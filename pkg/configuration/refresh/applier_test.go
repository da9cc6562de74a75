package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// eventLog is a recorder that keeps the Events as text.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (h *eventLog) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ref := regarding.(*corev1.ObjectReference)
	h.lines = append(h.lines, fmt.Sprintf("%s %s %s/%s: ", eventType, reason, ref.Kind, ref.Name)+fmt.Sprintf(note, args...))
}

func (h *eventLog) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}

const header = "apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\n"

func withKinds(texts ...string) []byte {
	text := header + "workloadKinds:\n"
	for _, t := range texts {
		name, template, _ := strings.Cut(t, "=")
		i := strings.LastIndex(name, "/")
		text += fmt.Sprintf("- {apiVersion: %s, kind: %s, template: %s}\n", name[:i], name[i+1:], template)
	}
	return []byte(text)
}

type applied struct {
	*refresh.Applier
	kinds    *refresh.Kinds
	events   *eventLog
	registry *prometheus.Registry
}

func newApplier(t *testing.T, flags workload.Kinds) applied {
	t.Helper()
	a := applied{kinds: refresh.NewKinds(flags), events: &eventLog{}, registry: prometheus.NewRegistry()}
	a.Applier = refresh.NewApplier(refresh.ApplierOptions{
		Kinds: a.kinds, Flags: flags, Recorder: a.events, Metrics: a.registry, Log: logr.Discard(),
		Referents: func([]referent.Definition) []string { return nil },
	})
	return a
}

func (a applied) lead(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(t, a.Lead(ctx))
	}()
	t.Cleanup(func() { stop(); <-done })
	synctest.Wait()
}

func (a applied) valid(t *testing.T) float64 {
	t.Helper()
	families, err := a.registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

func (a applied) texts() []string {
	var list []string
	for _, kind := range a.kinds.Current().All() {
		list = append(list, kind.String())
	}
	return list
}

func object(version string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "ConfigMap", Name: "config", UID: "u1", ResourceVersion: version}
}

func TestApplierKeepsTheLastGoodConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newApplier(t, set(t, "f.io/v1/F=spec.t"))
		require.Error(t, a.Ready(), "a replica is not ready before it knows which kinds it serves")
		a.lead(t)

		a.Offer(refresh.Content{Missing: errors.New("there is none"), Regarding: object("")})
		require.NoError(t, a.Ready(), "a missing configuration does not stop the program")
		assert.Zero(t, a.valid(t))
		assert.Equal(t, []string{"Warning ConfigurationUnreadable ConfigMap/config: no valid configuration has been read since the start, only the kinds of the flags are handled: there is none"}, a.events.take())
		a.Offer(refresh.Content{Faulty: errors.New("x: Required value"), Regarding: object("0")})
		assert.Equal(t, []string{"Warning ConfigurationRejected ConfigMap/config: no valid configuration has been read since the start, only the kinds of the flags are handled: x: Required value"}, a.events.take())
		assert.Equal(t, []string{"f.io/v1/F=spec.t"}, a.texts())

		a.Offer(refresh.Content{Text: withKinds("a.io/v1/A=spec.t"), Regarding: object("1")})
		assert.Equal(t, []string{"a.io/v1/A=spec.t", "f.io/v1/F=spec.t"}, a.texts(), "beside those of the command line")
		assert.InDelta(t, 1, a.valid(t), 0)
		assert.Equal(t, []string{"Normal ConfigurationApplied ConfigMap/config: applied: added a.io/v1/A=spec.t"}, a.events.take())

		broken := withKinds("a.io/v1/A=status", "b.io/v1/B=spec.t")
		for _, version := range []string{"2", "3"} {
			a.Offer(refresh.Content{Text: broken, Regarding: object(version)})
		}
		assert.Equal(t, []string{"a.io/v1/A=spec.t", "f.io/v1/F=spec.t"}, a.texts(), "all of the last valid one, nothing of the invalid one")
		assert.Zero(t, a.valid(t))
		assert.Equal(t, []string{`Warning ConfigurationRejected ConfigMap/config: the last valid configuration stays in force: workloadKinds[0].template: Invalid value: "status": the path must begin with spec: nothing but the spec is desired state`},
			a.events.take(), "reported once, also when something else of the object is edited")

		a.Offer(refresh.Content{Missing: errors.New("it is gone"), Regarding: object("")})
		assert.Equal(t, []string{"Warning ConfigurationUnreadable ConfigMap/config: the last valid configuration stays in force: it is gone"}, a.events.take())
		assert.Len(t, a.texts(), 2)

		a.Offer(refresh.Content{Text: withKinds("a.io/v1/A=spec.t"), Regarding: object("4")})
		assert.Equal(t, []string{"Normal ConfigurationApplied ConfigMap/config: applied: nothing changes"}, a.events.take(), "the object is valid again")
		a.Offer(refresh.Content{Text: withKinds("a.io/v1/A=spec.t"), Regarding: object("5")})
		assert.Empty(t, a.events.take(), "a label of the object is nothing to us")

		a.Offer(refresh.Content{Text: []byte(header), Regarding: object("6")})
		assert.Equal(t, []string{"f.io/v1/F=spec.t"}, a.texts())
		assert.Equal(t, []string{"Normal ConfigurationApplied ConfigMap/config: applied: removed a.io/v1/A=spec.t"}, a.events.take())
	})
}

// What may not be read may be valid.
func TestApplierSaysWhatIsRejected(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "config", errors.New("no permission"))
	for name, tc := range map[string]struct {
		content  refresh.Content
		rejected bool
	}{
		"valid":           {content: refresh.Content{Text: []byte(header)}},
		"invalid":         {content: refresh.Content{Text: []byte("x")}, rejected: true},
		"missing":         {content: refresh.Content{Missing: errors.New("there is none")}, rejected: true},
		"may not be read": {content: refresh.Content{Missing: fmt.Errorf("cannot be read: %w", forbidden)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rejected := false
			refresh.NewApplier(refresh.ApplierOptions{
				Kinds: refresh.NewKinds(workload.NewKinds()), Flags: workload.NewKinds(), Log: logr.Discard(),
				Referents: func([]referent.Definition) []string { return nil }, Rejected: func() { rejected = true },
			}).Offer(tc.content)
			assert.Equal(t, tc.rejected, rejected)
		})
	}
}

func TestConfigurationGoesBeforeFlags(t *testing.T) {
	t.Parallel()
	a := newApplier(t, set(t, "f.io/v1/F=spec.t", "g.io/v1/G=spec.t"))
	a.Offer(refresh.Content{Text: withKinds("f.io/v2/F=spec.pods")})
	assert.Equal(t, []string{"f.io/v2/F=spec.pods", "g.io/v1/G=spec.t"}, a.texts())
	a.Offer(refresh.Content{Text: []byte(header)})
	assert.Equal(t, []string{"f.io/v1/F=spec.t", "g.io/v1/G=spec.t"}, a.texts(), "the flag is back in force")
}

func TestOnlyTheLeaderSendsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newApplier(t, workload.NewKinds())
		a.Offer(refresh.Content{Text: []byte(header), Regarding: object("1")})
		a.Offer(refresh.Content{Faulty: errors.New("data[config.yaml]: Required value"), Regarding: object("2")})
		assert.Empty(t, a.events.take(), "a standby")
		<-time.After(10 * time.Minute)
		a.lead(t)
		rejected := []string{"Warning ConfigurationRejected ConfigMap/config: the last valid configuration stays in force: data[config.yaml]: Required value"}
		assert.Equal(t, rejected, a.events.take(), "the new leader reports what is wrong now")
		<-time.After(59 * time.Minute)
		synctest.Wait()
		assert.Empty(t, a.events.take())
		<-time.After(2 * time.Minute)
		synctest.Wait()
		assert.Equal(t, rejected, a.events.take(), "again when the API server has forgotten it")
		other := object("3")
		other.UID = types.UID("u2")
		a.Offer(refresh.Content{Faulty: errors.New("data[config.yaml]: Required value"), Regarding: other})
		assert.Equal(t, rejected, a.events.take(), "another object with the same fault")
		a.Offer(refresh.Content{Missing: errors.New("no file")})
		assert.Empty(t, a.events.take(), "there is no object to attach an Event to")
		a.Offer(refresh.Content{Faulty: errors.New(strings.Repeat("ü", 1000)), Regarding: other})
		lines := a.events.take()
		require.Len(t, lines, 1)
		assert.Less(t, len(lines[0]), 1100, "the API server refuses long texts")
	})
}

func TestReferencesWithoutEffectAreAWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := &eventLog{}
		a := applied{events: events, Applier: refresh.NewApplier(refresh.ApplierOptions{
			Kinds: refresh.NewKinds(workload.NewKinds()), Recorder: events, Log: logr.Discard(),
			Referents: func([]referent.Definition) []string { return []string{"referents[0].refs[0] (to: secrets)"} },
		})}
		a.Offer(refresh.Content{Text: []byte(header), Regarding: object("1")})
		a.lead(t)
		assert.Equal(t, []string{"Warning ConfigurationApplied ConfigMap/config: applied: nothing changes; " +
			"no effect, because this installation does not handle the kind (--secrets=false): referents[0].refs[0] (to: secrets)"}, events.take())
	})
}

func TestChangedReferentsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newApplier(t, workload.NewKinds())
		a.lead(t)
		const referents = "referents:\n- {id: proxies, gvr: {group: a.io, version: v1, resource: proxies}}\n"
		for n, text := range []string{header + referents, header} {
			a.Offer(refresh.Content{Text: []byte(text), Regarding: object(fmt.Sprint(n))})
		}
		assert.Equal(t, []string{
			"Normal ConfigurationApplied ConfigMap/config: applied: 1 referent", "Normal ConfigurationApplied ConfigMap/config: applied: removed all referents",
		}, a.events.take())
	})
}

func TestNewLeaderReportsWhatWasAppliedWhileNoReplicaLed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newApplier(t, workload.NewKinds())
		a.Offer(refresh.Content{Text: withKinds("a.io/v1/A=spec.t"), Regarding: object("1")})
		<-time.After(6 * time.Minute)
		a.Offer(refresh.Content{Text: withKinds("b.io/v1/B=spec.t"), Regarding: object("2")})
		<-time.After(5 * time.Minute)
		a.Offer(refresh.Content{Text: []byte(header), Regarding: object("3")})
		assert.Empty(t, a.events.take(), "a standby")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		lead := func() { done <- a.Lead(ctx) }
		go lead()
		synctest.Wait()
		assert.Equal(t, []string{
			"Normal ConfigurationApplied ConfigMap/config: applied: added b.io/v1/B=spec.t; removed a.io/v1/A=spec.t",
			"Normal ConfigurationApplied ConfigMap/config: applied: removed b.io/v1/B=spec.t",
		}, a.events.take(), "the leader of then has reported what is older")
		stop()
		require.NoError(t, <-done)

		ctx, stop = context.WithCancel(t.Context())
		defer stop()
		go lead()
		synctest.Wait()
		assert.Empty(t, a.events.take(), "nothing is reported twice")
		stop()
		require.NoError(t, <-done)

		for n := range 100 {
			a.Offer(refresh.Content{Text: withKinds(fmt.Sprintf("a.io/v%d/A=spec.t", n+1)), Regarding: object("4")})
		}
		ctx, stop = context.WithCancel(t.Context())
		defer stop()
		go lead()
		synctest.Wait()
		assert.Len(t, a.events.take(), 10, "what is kept is bounded")
		stop()
		require.NoError(t, <-done)
	})
}
