package install_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// releasesShareAWorkload has two releases with the same digest key handle the same workload: a change restarts it once, one Event reports
// that, and neither writes it again. Workloads with the label side are those of one release, and show that it is through.
func releasesShareAWorkload(t *testing.T, w *world) {
	t.Helper()
	w.installRelease(t, "a", except("b")...)
	w.installRelease(t, "b", except("a")...)
	both := newUser(t, w)
	web := both.creates("web")
	both.awaitKnown(web)
	mark, err := w.Audit().Mark()
	require.NoError(t, err)
	both.configures("web", "good evening")
	both.awaitChanges(web, 1, "the content changed")
	both.awaitReports(web)
	for _, side := range []string{"a", "b"} {
		both.on(side).settled()
		both.awaitReports(observe.Deployment(both.namespace, fmt.Sprintf("canary-%d", *both.canaries)))
	}
	both.requireChanges(web, 1, "once")
	assert.Len(t, both.awaitReports(web), 1, "both releases report it by the same Event")
	writes := w.patchesSince(t, mark, web)
	assert.LessOrEqual(t, len(writes), 2, "each release asks for the reload once at most, and neither writes again: %v", writes)
}

// releasesWithOtherFlagsShareAWorkload has two releases with the same digest key, one of which does not read the annotations of a workload:
// a change restarts it once, whichever webhook is called first.
func releasesWithOtherFlagsShareAWorkload(t *testing.T, w *world) {
	t.Helper()
	for reading, other := range map[string]string{"a": "b", "b": "a"} {
		w.installRelease(t, reading, except(other)...)
		w.installRelease(t, other, append(except(reading), "reloader.enabled=false")...)
		both := newUser(t, w)
		web := both.creates("web")
		both.listsForReloader(web)
		for n, greeting := range []string{"good evening", "good night"} {
			both.awaitKnown(web)
			both.labels(web, greeting[5:])
			both.configures("web", greeting)
			both.awaitChanges(web, n+1, "the content changed")
			both.on(reading).settled()
			both.on(other).settled()
			both.requireChanges(web, n+1, "once")
		}
	}
}

// listsForReloader lists the ConfigMap of a workload in an annotation of Reloader instead.
func (u *user) listsForReloader(of observe.Workload) {
	u.Helper()
	u.awaitKnown(of)
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"annotations":{%q:null,"configmap.reloader.stakater.com/reload":%q}}}`, configMaps, of.Name))
	require.NoError(u, u.world.Client().Patch(u.Context(), object, patch))
}

// except returns the values of a release that handles all workloads but those of the other side.
func except(side string) []string {
	const expression = "objectSelector.matchExpressions[0]."
	return []string{expression + "key=side", expression + "operator=NotIn", expression + "values[0]=" + side}
}

// awaitReports waits until an Event reports a reload of a workload, and returns all that do.
func (u *user) awaitReports(of observe.Workload) []eventsv1.Event {
	u.Helper()
	return u.awaitEvents(of, "Reloaded")
}

// awaitEvents waits until a workload has an Event with a reason, and returns all that it has.
func (u *user) awaitEvents(of observe.Workload, reason string) (found []eventsv1.Event) {
	u.Helper()
	require.NoError(u, await(patiently(u.T), "an Event "+reason+" about "+of.String(), func(ctx context.Context) (err error) {
		if found, err = u.events(ctx, of, reason); err == nil && len(found) == 0 {
			err = errors.New("there is none")
		}
		return err
	}))
	return found
}

// events are those about a workload with a reason.
func (u *user) events(ctx context.Context, of observe.Workload, reason string) ([]eventsv1.Event, error) {
	all := &eventsv1.EventList{}
	err := u.world.Client().List(ctx, all, client.InNamespace(of.Namespace))
	return slices.DeleteFunc(all.Items, func(e eventsv1.Event) bool {
		return e.Reason != reason || e.Regarding.Kind != of.Kind || e.Regarding.Name != of.Name
	}), err
}

// patchesSince are the patches of a Deployment since a mark, but for those of the user.
func (w *world) patchesSince(t *testing.T, mark controlplane.Mark, of observe.Workload) controlplane.Requests {
	t.Helper()
	requests, err := w.Audit().Since(patiently(t), mark)
	require.NoError(t, err)
	return requests.In(of.Namespace).Writes().Where(func(r controlplane.Request) bool {
		return r.Resource == "deployments" && r.Name == of.Name && r.Verb == "patch" && r.User != controlplane.Admin().User
	})
}

// workloadChangesSides divides the workloads of a namespace between two releases by the label side. The releases have different digest
// keys, so that neither can compare what the other one has recorded. A workload changes sides, and back.
func workloadChangesSides(t *testing.T, w *world) {
	t.Helper()
	key := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ours.Namespace, Name: "key-of-b"},
		StringData: map[string]string{"0001": rand.Text() + rand.Text()},
	}
	require.NoError(t, w.Client().Create(t.Context(), key))
	w.installRelease(t, "a", "objectSelector.matchLabels.side=a")
	w.installRelease(t, "b", "objectSelector.matchLabels.side=b", "digestKey.existingSecret="+key.Name)

	both := newUser(t, w)
	a, b := both.on("a"), both.on("b")
	web := a.creates("web")
	a.awaitKnown(web)
	a.configures("web", "good evening")
	a.reloadedOnce(web, 1)

	for n, side := range []*user{b, a} {
		mark, err := w.Audit().Mark()
		require.NoError(t, err)
		side.takes(web)
		a.settled()
		b.settled()
		both.requireChanges(web, 1+n, "another release handles the workload now, which is no change")
		writes := w.patchesSince(t, mark, web)
		assert.LessOrEqual(t, len(writes), 1, "the other release adopts the workload, and this one writes nothing: %v", writes)
		both.configures("web", fmt.Sprintf("good night %d", n))
		a.settled()
		b.reloadedOnce(web, 2+n)
	}
	releasesWithOwnKeysReportTheWorkload(t, w, both, web)
}

// releasesWithOwnKeysReportTheWorkload has both releases, each with a digest key of its own, handle the same workload: an Event asks for
// one key, or one release.
func releasesWithOwnKeysReportTheWorkload(t *testing.T, w *world, both *user, web observe.Workload) {
	t.Helper()
	before := len(both.watcher.Changes(web))
	earlier, err := both.events(t.Context(), web, "ForeignDigestKey")
	require.NoError(t, err)
	require.Empty(t, earlier)
	w.installRelease(t, "b", "objectSelector.matchLabels.side=a", "digestKey.existingSecret=key-of-b")
	event := both.awaitEvents(web, "ForeignDigestKey")[0]
	assert.Contains(t, event.Note, "Let one installation handle the workload, or give both the same digest key Secret")
	both.seen()
	both.requireChanges(web, before, "nothing has changed")
}

// on is the user whose workloads have the label side.
func (u *user) on(side string) *user {
	u.Helper()
	copied := *u
	copied.selected = map[string]string{"side": side}
	return &copied
}

// takes gives a workload the labels of the user's workloads.
func (u *user) takes(of observe.Workload) {
	u.Helper()
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"side":%q}}}`, u.selected["side"]))
	require.NoError(u, u.world.Client().Patch(u.Context(), object, patch))
}
