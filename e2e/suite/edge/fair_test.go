package edge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// fleetOf creates Deployments that list configmap/app, and waits until they are known.
func fleetOf(s *fixture.Fixture, n int) []observe.Workload {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	var all []observe.Workload
	for i := range n {
		all = append(all, s.Deployment("web-"+strconv.Itoa(i), fixture.Uses{ConfigMaps: []string{"app"}}))
	}
	for _, w := range all {
		s.AwaitKnown(w)
	}
	return all
}

const (
	// givenUp is how long the loop lets a write hang. Where the API server notices late that one was given up, the next
	// write hangs beside it.
	givenUp = 10 * time.Second
	// promptly is how soon a reload must come, settle time included: before a write that hangs is given up.
	promptly = 6 * time.Second
	// slots is how many writes of the loop may be in flight in one namespace.
	slots = 8
)

// reloadsOf returns a function that changes configmap/app and measures how long the reload of a workload takes, and the limit for that:
// on a machine where a reload takes seconds although nothing delays it, a multiple of that time.
func reloadsOf(s *fixture.Fixture, w observe.Workload) (reload func() time.Duration, limit time.Duration) {
	s.Helper()
	changes := len(s.Watcher.Changes(w))
	reload = func() time.Duration {
		changes++
		start := time.Now()
		s.SetConfigMap("app", "key", "changed "+strconv.Itoa(changes))
		s.AwaitChanges(w, changes, "another namespace must not hold it up")
		return time.Since(start)
	}
	return reload, max(promptly, 4*max(reload(), reload()))
}

// below returns an error unless something took less than a limit.
func below(took, limit time.Duration) error {
	if took >= limit {
		return fmt.Errorf("it took %s, and less than %s is allowed", took, limit)
	}
	return nil
}

func TestHangingWebhookInOneNamespaceDelaysNoOther(t *testing.T) {
	t.Parallel()
	hung, other := fixture.New(t, shared), fixture.New(t, shared)
	all, healthy := fleetOf(hung, 40), fleetOf(other, 1)[0]
	waiting := other.Deployment("waiting", fixture.Uses{Secrets: []string{"db"}})
	other.AwaitKnown(waiting)
	excluded := other.Deployment("excluded", fixture.Uses{
		ConfigMaps: []string{"app"}, Labels: map[string]string{"pod-reloader.cs.sap.com/ignored": "true"},
	})
	reload, limit := reloadsOf(other, healthy)
	hook := newHangingWebhook(hung)
	hook.hang()
	hung.SetConfigMap("app", "key", "2")
	hung.Await("a write to hang", func() error {
		if hook.hanging.Load() > 0 {
			return nil
		}
		return assert.AnError
	})
	prompt := func() {
		t.Helper()
		assert.NoError(t, fixture.Steadily(t, shared, func() error { return below(reload(), limit) }))
	}
	for range 5 {
		prompt()
	}
	other.AwaitEvent(healthy, "Reloaded", "configmap/app modified")
	other.Secret("db", fixture.Data{"key": "1"})
	other.AwaitAdopted(waiting, "secret/db")
	other.Merge(other.Get(excluded), excluded.Name, `{"metadata":{"labels":{"pod-reloader.cs.sap.com/ignored":null}}}`)
	other.AwaitKnown(excluded)
	stored := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+fixture.ConfigHash+`":"as without a webhook"}}}`))
	require.NoError(t, other.Status().Patch(t.Context(), other.Get(healthy), stored))
	other.AwaitWorkload(healthy, "the purge of a stored reload request", func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()[fixture.ConfigHash] == ""
	})
	hangs := func() error {
		if hook.over.Load() > 0 && hook.hanging.Load() > 0 {
			return nil
		}
		return assert.AnError
	}
	hung.Await("a write that hangs after the first was given up", hangs)
	prompt() // beside the write that follows
	hung.Await("writes that hang still", hangs)
	assert.LessOrEqual(t, hook.most.Load(), int64(slots), "writes in flight in one namespace")
	hook.release()
	hung.AwaitExactly(1, "its reload is still due, and no write that was given up is stored besides", all...)
}

// hangingWebhook is a validating webhook that does not answer while it hangs.
type hangingWebhook struct {
	// hanging is how many requests hang, most how many did at once before the first of them could be given up, over how many were.
	hanging, most, over atomic.Int64

	mu    sync.Mutex
	wait  chan struct{} // closed while it answers
	until time.Time     // most does not change any more
}

func newHangingWebhook(s *fixture.Fixture) *hangingWebhook {
	s.Helper()
	h := &hangingWebhook{wait: make(chan struct{})}
	close(h.wait)
	fixture.Webhook{Answer: h.answer}.Register(s)
	s.Cleanup(h.release)
	return h
}

func (h *hangingWebhook) hang() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait, h.until = make(chan struct{}), time.Now().Add(givenUp)
}

func (h *hangingWebhook) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.wait:
	default:
		close(h.wait)
	}
}

// answer allows each request, as soon as the webhook answers.
func (h *hangingWebhook) answer(ctx context.Context, _ *admissionv1.AdmissionRequest) string {
	h.mu.Lock()
	wait := h.wait
	if hanging := h.hanging.Add(1); time.Now().Before(h.until) {
		h.most.Store(max(h.most.Load(), hanging))
	}
	h.mu.Unlock()
	defer h.hanging.Add(-1)
	select {
	case <-wait:
	case <-ctx.Done():
		h.over.Add(1)
	}
	return ""
}

// Without --settle-max no workload would be restarted before the last write. Not in parallel with the other tests of this package,
// which would wait for the writers. How soon the restarts come is measured by the benchmark constant-change.
func TestConstantChangeDoesNotPreventRestarts(t *testing.T) {
	for name, test := range map[string]constantChange{
		"SixASecond": {writers: 1, every: 150 * time.Millisecond},
		// Some 90 writes a second. The simulator writes 500, in its histories constant-change-fast and constant-conflict-fast.
		"AsFastAsTheControlPlaneServes": {writers: 8, every: 16 * time.Millisecond},
		"BesideAnotherWebhook":          {writers: 1, every: 150 * time.Millisecond, beside: touchEachWrite},
	} {
		t.Run(name, func(t *testing.T) { test.restartsGoOn(t) })
	}
}

// constantChange writes one ConfigMap all the time.
type constantChange struct {
	writers int
	every   time.Duration
	// beside begins what else happens, and returns what ends it; it may be nil.
	beside func(s *fixture.Fixture, all []observe.Workload) (end func())
}

// warningsAtOnce is how many Warning Events of one reason a workload gets in a row; from then on it gets one a minute.
const warningsAtOnce = 4

// restartsGoOn writes until each workload of the ConfigMap was restarted twice, and awaits the last content on each.
func (c constantChange) restartsGoOn(t *testing.T) {
	t.Helper()
	s := stage(t)
	began := time.Now()
	all := fleetOf(s, 30)
	endBeside := func() {}
	if c.beside != nil {
		endBeside = c.beside(s, all)
	}
	end := c.write(s)
	for _, w := range all {
		s.AwaitChanges(w, 2, "the writes go on")
	}
	endBeside()
	written := end()
	fresh := s.Deployment("fresh", fixture.Uses{ConfigMaps: []string{"app"}})
	last := fixture.TemplateAnnotations(s.Get(fresh))[fixture.ConfigHash]
	require.NotEmpty(t, last)
	for _, w := range all {
		s.AwaitWorkload(w, "the stamp of the last content", func(o *unstructured.Unstructured) bool {
			return fixture.TemplateAnnotations(o)[fixture.ConfigHash] == last
		})
	}
	for _, w := range all {
		warnings := slices.DeleteFunc(s.Events(w), func(e eventsv1.Event) bool { return e.Type != corev1.EventTypeWarning })
		minutes := int(time.Since(began) / time.Minute)
		for reason, count := range fixture.CountByReason(warnings) {
			assert.LessOrEqual(t, count, warningsAtOnce+minutes, "Warning Events %s about %s in %d min", reason, w.Name, minutes)
		}
	}
	t.Logf("%d writes, %s in all", written, time.Since(began))
}

// write begins to write. The function that it returns ends that, and returns the number of writes.
func (c constantChange) write(s *fixture.Fixture) (end func() int64) {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "app"}}
	var written, failed atomic.Int64
	var writers sync.WaitGroup
	for writer := range c.writers {
		writers.Go(func() {
			repeat(ctx, c.every, func(n int) { //nolint:contextcheck // a write that has begun may end
				patch := fmt.Sprintf(`{"data":{"key":"%d of writer %d"}}`, n, writer)
				if s.Patch(s.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))) != nil {
					failed.Add(1)
				} else {
					written.Add(1)
				}
			})
		})
	}
	return func() int64 {
		stop()
		writers.Wait()
		assert.Zero(s, failed.Load(), "writes that failed")
		return written.Load()
	}
}

// stripped shows that the loop waits for a writer that removes what the loop has written, or writes another junk, again and again, reports
// it, and restarts nothing. A config-hash that is removed from the template is a restart by that writer; the loop does not restore it.
func stripped(t *testing.T, in *installation.Installation) {
	t.Helper()
	const record = `"metadata":{"annotations":{"` + fixture.ConfigRecord + `":`
	const template = `"spec":{"template":{"metadata":{"annotations":{"` + fixture.ConfigHash + `":`
	tests := map[string]struct {
		patch    func(n int) string
		restarts int
	}{
		"Record": {func(n int) string {
			if n%2 == 1 {
				return `{` + record + strconv.Quote("junk "+strconv.Itoa(n)) + `}}}`
			}
			return `{` + record + `null}}}`
		}, 0},
		"RecordAndConfigHash": {func(int) string { return `{` + record + `null}},` + template + `null}}}}}` }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := fixture.New(t, in)
			w := fleetOf(s, 1)[0]
			s.SetConfigMap("app", "key", "2")
			s.AwaitExactly(1, "a reload, which sets the config-hash of the template", w)
			require.Contains(t, fixture.TemplateAnnotations(s.Get(w)), fixture.ConfigHash)
			contest(s, w, test.patch)
			s.AwaitExactly(1+test.restarts, "the loop has restarted nothing", w)
		})
	}
}

// contest patches a workload each time that it has a Record of the loop, until the loop waits longer and longer and reports that.
func contest(s *fixture.Fixture, w observe.Workload, patch func(n int) string) {
	s.Helper()
	const atOnce, least = 2, 4 // writes of the loop that do not wait, and removals
	removed, begin := 0, time.Now()
	awaitRecord := func() {
		s.AwaitWorkload(w, "a Record of the loop", func(o *unstructured.Unstructured) bool {
			text := o.GetAnnotations()[fixture.ConfigRecord]
			return text != "" && !strings.HasPrefix(text, "junk")
		})
	}
	s.Await("the loop to wait", func() error {
		awaitRecord()
		s.MergeWorkload(w, patch(removed))
		if removed++; removed < least {
			return fmt.Errorf("%d removals", removed)
		}
		for _, event := range s.Events(w) {
			if event.Reason == "RecordContested" {
				return nil
			}
		}
		return errors.New("no Event reports the removals")
	})
	awaitRecord()
	assert.GreaterOrEqual(s, time.Since(begin), time.Second<<(removed-atOnce)-time.Second, "the wait doubles from write to write")
	s.AwaitEvent(w, "RecordContested", "managedFields")
}
