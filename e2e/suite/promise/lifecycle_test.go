package promise_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// fleet is a namespace full of workloads of both dialects, each with a ConfigMap and a Secret of its own, that lives through all
// that can happen to pod-reloader itself.
type fleet struct {
	*fixture.Fixture
	workloads []observe.Workload
	// expected is how many template changes each has had for a reason.
	expected int
	// rounds counts the changes of the configuration.
	rounds int
	// podGroups have running pods, and a configuration that does not change: one is older than the installation, one younger.
	podGroups []*podGroup
}

// fleetSize makes each event a repetition for that many workloads.
const fleetSize = 52

// Restarts, upgrades and removal of pod-reloader: P2 for every event, and after every event P1, which shows that it works.
func TestP1AndP2ThroughTheLifeOfAnInstallation(t *testing.T) {
	t.Parallel()
	f, in := newFleetWithInstallation(t, installation.Options{Patient: true, LongLease: true}) // a leader that is stopped gives it back
	f.nothing("the installation on a cluster full of workloads")
	f.puts()
	f.everything("a change after the installation, known from the adopted Record alone")
	f.restarts(in)
	f.downtime(in)
	f.keys(in)
	f.upgrade(in)
	f.removal(in)
}

// The same for changes of the leader.
func TestP1AndP2ThroughFailovers(t *testing.T) {
	t.Parallel()
	f, in := newFleetWithInstallation(t, installation.Options{})
	f.resignation(in)
	f.kill(in)
	f.freeze(in)
}

// newFleetWithInstallation installs pod-reloader on a cluster full of workloads.
func newFleetWithInstallation(t *testing.T, options installation.Options) (*fleet, *installation.Installation) {
	t.Helper()
	cp := controlplane.New(t, controlplane.Options{Nodes: podGroupSize})
	f := newFleet(t, cp)
	f.addPodGroup(t, cp)
	options.Args = []string{"--settle=200ms", "--refractory=0s", "--shutdown-grace-period=500ms"}
	f.Installation = installation.New(t, cp, options)
	for _, w := range f.workloads {
		f.AwaitAdopted(w, "configmap/"+w.Name)
		f.AwaitAdopted(w, "secret/"+w.Name)
	}
	f.addPodGroup(t, cp)
	return f, f.Installation
}

// addPodGroup starts workloads with pods in a namespace of their own.
func (f *fleet) addPodGroup(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	c := newPodGroup(t, cp, false)
	c.start()
	c.ran = c.awaitReady("the start")
	f.podGroups = append(f.podGroups, c)
}

func newFleet(t *testing.T, cp *controlplane.ControlPlane) *fleet {
	t.Helper()
	namespace := cp.Namespace(t)
	f := &fleet{Fixture: &fixture.Fixture{
		TB: t, Client: cp.Client(), Namespace: namespace, Watcher: observe.New(t, cp.Admin(), namespace),
	}}
	for n := range fleetSize {
		name := fmt.Sprintf("app%02d", n)
		marked(f.Fixture, name)
		kind := fixture.Kinds[n%len(fixture.Kinds)]
		f.workloads = append(f.workloads, f.Workload(kind, name, fixture.Uses{
			ConfigMaps: []string{name}, Secrets: []string{name}, Annotations: fleetAnnotations(kind, name, n/len(fixture.Kinds)),
		}))
	}
	return f
}

// fleetAnnotations returns how a workload asks for what it reads, in turn: by the lists, which are the default, or by the annotations of
// Reloader. CronJobs have the lists: by the other annotations they also run at once.
func fleetAnnotations(kind, name string, turn int) map[string]string {
	if kind == "CronJob" {
		return nil
	}
	return selections(name)[[]string{"lists", "auto", "expressions", "search"}[turn%4]]
}

// nothing asserts that an event has restarted nothing.
func (f *fleet) nothing(event string) {
	f.Helper()
	f.Settled()
	for _, w := range f.workloads {
		f.RequireChanges(w, f.expected, event+" restarts nothing")
	}
	for _, c := range f.podGroups {
		c.assertSame(event)
	}
}

// puts replaces workloads, which is no change of them.
func (f *fleet) puts() {
	f.Helper()
	for _, c := range f.podGroups {
		c.puts()
	}
	f.nothing("a PUT with our annotations, and one without them")
}

// change gives every workload a new configuration by one write, to its ConfigMap or to its Secret in turn: two writes
// might be further apart than the settle time.
func (f *fleet) change() {
	f.Helper()
	f.changeSome(f.workloads)
	f.rounds++
}

func (f *fleet) changeSome(workloads []observe.Workload) {
	f.Helper()
	for n, w := range workloads {
		if (n+f.rounds)%2 == 0 {
			f.SetConfigMap(w.Name, "key", rand.Text())
		} else {
			f.SetSecret(w.Name, "key", rand.Text())
		}
	}
}

// everything changes the configuration of all: each restarts once more.
func (f *fleet) everything(event string) {
	f.Helper()
	f.change()
	f.restarted(event)
}

func (f *fleet) restarted(event string) {
	f.Helper()
	f.expected++
	for _, w := range f.workloads {
		f.AwaitChanges(w, f.expected, event+" restarts "+w.String())
	}
	f.nothing("anything beyond one restart for " + event)
}

func (f *fleet) restarts(in *installation.Installation) {
	f.Helper()
	require.NoError(f, in.RestartAll(f.Patiently()))
	f.nothing("a rolling restart")
	require.NoError(f, in.StopAll(f.Patiently()))
	lease := &coordinationv1.Lease{}
	require.NoError(f, f.Client.Get(f.Context(), types.NamespacedName{Namespace: in.Namespace(), Name: "pod-reloader"}, lease))
	assert.Empty(f, ptr.Deref(lease.Spec.HolderIdentity, ""), "a leader that ends releases the lease: the next need not wait for it")
	f.idle(in, lease)
	require.NoError(f, in.StartAll(f.Patiently()))
	f.nothing("a stop and a start of all replicas")
}

// idle requires that `why` reports an installation without a leader. It makes the lease ten minutes older instead of waiting.
func (f *fleet) idle(in *installation.Installation, lease *coordinationv1.Lease) {
	f.Helper()
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(lease.Spec.RenewTime.Add(-10 * time.Minute)))
	require.NoError(f, f.Update(f.Context(), lease))
	output, err := in.Why(f.Context(), strings.ToLower(f.workloads[0].Kind)+"/"+f.workloads[0].Name, "-n", f.Namespace)
	require.NoError(f, err)
	assert.Contains(f, output, "no replica of pod-reloader leads, so that changes restart nothing, unless it runs without --leader-elect: the lease "+in.Namespace()+"/pod-reloader")
}

func (f *fleet) leader(in *installation.Installation) *installation.Replica {
	f.Helper()
	leader, err := in.Leader(f.Patiently())
	require.NoError(f, err)
	return leader
}

func (f *fleet) resignation(in *installation.Installation) {
	f.Helper()
	leader := f.leader(in)
	require.NoError(f, leader.Stop(f.Patiently()))
	f.nothing("a leader that resigns")
	require.NoError(f, leader.Start(f.Patiently()))
}

func (f *fleet) kill(in *installation.Installation) {
	f.Helper()
	leader := f.leader(in)
	half := len(f.workloads) / 2
	f.changeSome(f.workloads[:half])
	leader.Kill()
	f.changeSome(f.workloads[half:])
	f.restarted("a change while the leader dies")
	require.NoError(f, leader.Start(f.Patiently()))
}

func (f *fleet) freeze(in *installation.Installation) {
	f.Helper()
	leader := f.leader(in)
	leader.Freeze()
	f.everything("a change while the leader is frozen")
	leader.Thaw()
	f.nothing("a frozen leader that goes on")
	select {
	case <-leader.Exited(): // it finds its lease gone, and ends so that it is started anew
	case <-f.Patiently().Done():
		require.Fail(f, "a replica that has lost its lease goes on")
	}
	require.NoError(f, leader.Start(f.Patiently()))
}

func (f *fleet) downtime(in *installation.Installation) {
	f.Helper()
	require.NoError(f, in.StopAll(f.Patiently()))
	for range 3 {
		f.change()
	}
	require.NoError(f, in.StartAll(f.Patiently()))
	f.restarted("changes while pod-reloader was down")

	require.NoError(f, in.StopAll(f.Patiently()))
	for n, w := range f.workloads {
		before := &corev1.ConfigMap{}
		require.NoError(f, f.Client.Get(f.Context(), types.NamespacedName{Namespace: f.Namespace, Name: w.Name}, before))
		f.SetConfigMap(w.Name, "key", "something else")
		f.SetConfigMap(w.Name, "key", before.Data["key"])
		if n%2 == 0 {
			recreate(f.Fixture, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.Name, Annotations: before.Annotations}, Data: before.Data})
		}
	}
	require.NoError(f, in.StartAll(f.Patiently()))
	f.nothing("a change there and back while pod-reloader was down")
}

func (f *fleet) keys(in *installation.Installation) {
	f.Helper()
	var signing string
	for n := 2; n <= 4; n++ {
		signing = f.RotateKey(fmt.Sprintf("%04d", n))
		f.nothing("a rotation of the digest key")
	}
	f.everything("a change after rotations of the digest key")
	for _, w := range f.workloads {
		assert.Regexp(f, "^"+signing, fixture.TemplateAnnotations(f.Get(w))[fixture.ConfigHash], "%s: the newest key signs", w)
	}
	f.RemoveKeys(2, "0001", "0002")
	f.nothing("the end of old digest keys that no Record uses any more")

	require.NoError(f, in.StopAll(f.Patiently()))
	require.NoError(f, f.Delete(f.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace(), Name: fixture.DigestKey}}))
	require.NoError(f, in.StartAll(f.Patiently()))
	f.nothing("the loss of the digest key")
	for _, w := range f.workloads {
		f.AwaitEvent(w, "RecordAdopted", "is lost")
	}
	f.everything("a change after the loss of the digest key")
}

func (f *fleet) upgrade(in *installation.Installation) {
	f.Helper()
	old := in.Replicas()
	require.NoError(f, in.Apply(f.Patiently()))
	for _, replica := range old {
		_, err := in.AddReplica(f.Patiently(), installation.ReplicaOptions{Args: []string{"--log-level=debug"}})
		require.NoError(f, err)
		f.nothing("old and new replicas beside each other")
		require.NoError(f, in.RemoveReplica(f.Patiently(), replica))
	}
	f.nothing("an upgrade")
	require.NoError(f, in.RenewCertificate())
	f.everything("a change after an upgrade")
}

func (f *fleet) removal(in *installation.Installation) {
	f.Helper()
	require.NoError(f, f.Delete(f.Context(), &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: in.WebhookConfiguration()},
	}))
	f.nothing("the kill switch")
	f.everything("a change without the webhook")
	require.NoError(f, in.StopAll(f.Patiently()))
	require.NoError(f, f.Watcher.Sync(f.Patiently()))
	for _, w := range f.workloads {
		assert.Len(f, f.Watcher.Changes(w), f.expected, "%s: the end of pod-reloader restarts nothing", w)
	}
}
