package action

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// nothing is a client that finds nothing.
type nothing struct {
	client.Reader
	err error
}

func (n nothing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return n.err
}

// A load balancer without a route answers 404: the reload is as due as before.
func TestReloadIsRetriedOn404OfALoadBalancer(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, tc := range map[string]struct {
		err   error
		again bool
	}{
		"the workload is gone":     {apierrors.NewNotFound(resource, "web"), false},
		"a load balancer's answer": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "web", "default backend", 0, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actions := newActions(Options{Gather: gather.Gatherer{APIReader: nothing{err: tc.err}}}, &reloadtest.Outbox{})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, Object: workload.Summary{Kind: workload.DaemonSet()}}
			result := actions.stamps.write(t.Context(), s, policy.Verdict{}).close(t.Context(), actions.base)
			assert.Equal(t, tc.again, result.RequeueAfter > 0, "tried again")
		})
	}
}

// stored is an API server with a Deployment whose recorded configuration is an old one. A webhook may change last-reload in
// what is written.
type stored struct {
	client.Client
	uid         types.UID
	labels      map[string]string
	annotations map[string]string
	paused      bool
	// hash is the config-hash of the template; empty for none.
	hash    string
	webhook func(lastReload string) string
	// writes counts the patches.
	writes int
}

func (c *stored) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	u := object.(*unstructured.Unstructured)
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetUID(c.uid)
	u.SetLabels(c.labels)
	u.SetAnnotations(c.annotations)
	if c.paused {
		if err := unstructured.SetNestedField(u.Object, true, "spec", "paused"); err != nil {
			return err
		}
	}
	if c.hash != "" {
		hash := map[string]any{annotation.DefaultPrefix + "config-hash": c.hash}
		if err := unstructured.SetNestedMap(u.Object, hash, "spec", "template", "metadata", "annotations"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedMap(u.Object, map[string]any{}, "spec", "template", "spec")
}

func (c *stored) Patch(_ context.Context, answer client.Object, patch client.Patch, _ ...client.PatchOption) error {
	c.writes++
	body, err := patch.Data(answer)
	if err != nil {
		return err
	}
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		return err
	}
	last := ""
	for _, o := range operations {
		if o.Op != "test" && strings.HasSuffix(o.Path, "~1last-reload") {
			last = o.Value.(string)
		}
	}
	answer.SetAnnotations(map[string]string{annotation.DefaultPrefix + "last-reload": c.webhook(last)})
	return nil
}

// A webhook that is back may undo a direct stamp, or make another: what is stored counts.
func TestDirectStampIsReportedAsItIsStored(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, other := reloadtest.ReloadAt(now.Add(-time.Hour), "before").String(), reloadtest.ReloadAt(now, "other")
	for name, tc := range map[string]struct {
		uid     types.UID
		webhook func(string) string
		again   bool
		note    string
	}{
		"no webhook":                 {"", func(written string) string { return written }, false, "pod template updated: configmap/app deleted"},
		"a webhook undoes it":        {"", func(string) string { return before }, true, ""},
		"a webhook stamps by itself": {"", func(string) string { return other.String() }, false, "pod template updated: configmap/app modified"},
		"another workload by now":    {"new", nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := reloadtest.Reloaded(reloadtest.Web(t), reloadtest.ReloadAt(now.Add(-time.Hour), "before"))
			c, out := &stored{webhook: tc.webhook, hash: "before", uid: cmp.Or(tc.uid, types.UID(web.Object.UID())), annotations: map[string]string{
				annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "last-reload": before,
				annotation.DefaultPrefix + "config-record": recordOf(ring, "before"),
			}}, &reloadtest.Outbox{}
			actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c}, out)
			result := actions.stamps.write(t.Context(), web, policy.Verdict{}).close(t.Context(), actions.base)
			assert.Equal(t, tc.again, result.RequeueAfter > 0, "tried again")
			if tc.note == "" {
				assert.Empty(t, out.Messages, "there is no reload to report")
				return
			}
			assert.Equal(t, []string{tc.note}, out.Notes())
		})
	}
}

// Another writer reverts all annotations as soon as the loop has stamped the workload, so that the reload is due again.
func TestDirectStampThatIsUndoneEachTimeIsContested(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, present := reloadtest.ReloadAt(now.Add(-time.Hour), "before"), recordOf(ring, "before")
	web := reloadtest.Reloaded(reloadtest.Web(t), before)
	c := &stored{webhook: func(written string) string { return written }, hash: before.Hash, uid: types.UID(web.Object.UID()), annotations: map[string]string{
		annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "last-reload": before.String(),
		annotation.DefaultPrefix + "config-record": present,
	}}
	actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c}, &reloadtest.Outbox{})
	for n := range 4 {
		assert.Equal(t, n > 2, actions.state.Contests.Wait(web.Key, present, now) > 0, "a release tool may undo some")
		actions.stamps.write(t.Context(), web, policy.Verdict{}).close(t.Context(), actions.base)
	}
	assert.Equal(t, 4, c.writes)
}

// The answer to a reload was lost, or another leader made it, and the watch delivers nothing. No webhook answers the next one.
func TestDirectStampWaitsForTheRefractoryTimeThatIsStored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		at   time.Time
		hash string
		// seen says that the watch shows it.
		seen bool
		wait time.Duration
	}{
		"reloaded a second ago":                       {at: now.Add(-time.Second), wait: 4 * time.Second},
		"a clock was ahead":                           {at: now.Add(time.Hour), wait: 5 * time.Second},
		"reloaded long ago":                           {at: now.Add(-5 * time.Second)},
		"a stamp without an explanation has followed": {at: now.Add(-time.Second), hash: "other", wait: 4 * time.Second},
		"the gates have looked at it":                 {at: now.Add(-time.Second), seen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := digesttest.Ring(t, "a")
			hash := "present"
			last := reloadtest.ReloadAt(tc.at, cmp.Or(tc.hash, hash)).String()
			web := reloadtest.Reloaded(reloadtest.Web(t), reloadtest.ReloadAt(now.Add(-time.Hour), "before"))
			if tc.seen {
				web.View.Managed[stamp.LastReload] = last
			}
			c := &stored{webhook: func(s string) string { return s }, uid: types.UID(web.Object.UID()), hash: hash, annotations: map[string]string{
				annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "last-reload": last,
				annotation.DefaultPrefix + "config-record": recordOf(ring, hash),
			}}
			actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c, Gates: state.Gates{Refractory: 5 * time.Second}}, &reloadtest.Outbox{})
			ended := actions.stamps.write(t.Context(), web, policy.Verdict{})
			assert.Equal(t, tc.wait > 0, actions.state.Deferrals.IgnoresEvents(web.Key, now), "events end no wait of another cause")
			result := ended.close(t.Context(), actions.base)
			assert.Equal(t, tc.wait, result.RequeueAfter)
			assert.Equal(t, tc.wait > 0, c.writes == 0, "a reload that waits writes nothing")
			assert.Equal(t, tc.wait, actions.state.Deferrals.Wait(web.Key, now.Add(time.Second), now), "no event ends the wait")
		})
	}
}

// The watch may be behind: the reload is due by what it shows, but what is done is decided by what is stored.
func TestDirectStampGoesByWhatIsStored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const period = "deployment.reloader.stakater.com/pause-period"
	const paused = "pod template updated, rollout pending (paused for 1m0s): configmap/app deleted"
	for name, tc := range map[string]struct {
		// seen is the period that the watch shows, requested the pause that the request has made which no webhook handled.
		seen, requested time.Duration
		annotations     map[string]string
		labels          map[string]string
		paused          bool
		notes           []string
	}{
		"the workload asks for a pause by now":  {annotations: map[string]string{period: "1m"}, notes: []string{paused}},
		"the workload asks for no pause by now": {seen: time.Minute, notes: []string{"pod template updated: configmap/app deleted"}},
		"the request has paused it": {
			seen: time.Minute, requested: time.Minute, annotations: map[string]string{period: "1m", pausedAt: "2026-01-02T03:04:05Z"}, paused: true,
			notes: []string{paused},
		},
		"the workload is paused by now":        {paused: true, notes: []string{"pod template updated, rollout pending (paused): configmap/app deleted"}},
		"the workload asks for nothing by now": {annotations: map[string]string{annotation.DefaultPrefix + "configmaps": ""}},
		"the workload is excluded by now":      {labels: map[string]string{annotation.DefaultPrefix + "ignored": "true"}},
		"the workload is out of scope by now":  {labels: map[string]string{"tier": "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := digesttest.Ring(t, "a")
			c, out := &stored{
				uid: "u1", hash: "before", labels: tc.labels, paused: tc.paused, webhook: func(written string) string { return written },
				annotations: map[string]string{annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "config-record": recordOf(ring, "before")},
			}, &reloadtest.Outbox{}
			maps.Copy(c.annotations, tc.annotations)
			gathered := absentApp(t, c, ring, now)
			gathered.Reader = bothDialects(t)
			actions := newActions(Options{Gather: gathered, Client: c, PausedAt: pausedAt, InScope: notOther}, out)
			s := reloadtest.Reloaded(pausedDeployment(t, tc.seen, false, ""), reloadtest.ReloadAt(now.Add(-time.Hour), "before"))
			s.Effects.PausedFor = tc.requested
			assert.Zero(t, actions.stamps.write(t.Context(), s, policy.Verdict{}).close(t.Context(), actions.base))
			assert.Equal(t, tc.notes, out.Notes())
			assert.Equal(t, len(tc.notes), c.writes)
		})
	}
}

// notOther is a scope that leaves out workloads with the label tier=other.
func notOther(_ context.Context, _ workload.Key, labels map[string]string) bool {
	return labels["tier"] != "other"
}
