package chain_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// outage is a graph on an installation that may break.
type outage struct {
	*graphFixture
	in    *installation.Installation
	proxy *controlplane.Proxy
	web   observe.Workload
}

// TestOutages runs, one after the other on one installation, what happens while something is away.
func TestOutages(t *testing.T) {
	t.Parallel()
	cp := controlplane.New(t, controlplane.Podless())
	proxy, err := controlplane.NewProxy(cp.Address())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	in := installation.New(t, cp, installation.Options{
		Args: []string{
			"--refractory=0s", "--settle=" + settle.String(), "--config=configmap:pod-reloader/settings", "--shutdown-grace-period=200ms",
		},
		Connect: func(c *rest.Config) { c.Host = "https://" + proxy.Addr() },
	})
	require.NoError(t, furnish(t.Context(), cp))
	for _, test := range []struct {
		name string
		run  func(*outage)
	}{
		{"ChangedWhileTheControllerWasDown", changedWhileTheControllerWasDown},
		{"CreatedWhileTheControllerWasDown", createdWhileTheControllerWasDown},
		{"HandedOverInTheMiddleOfAChange", handedOverInTheMiddleOfAChange},
		{"HandedOverDuringAHold", handedOverDuringAHold},
		{"LeaderKilledInTheMiddleOfAChange", leaderKilledInTheMiddleOfAChange},
		{"PermissionsWithdrawnAndGivenBack", permissionsWithdrawnAndGivenBack},
		{"VersionNoLongerServed", versionNoLongerServed},
		{"StoredInAnotherVersion", storedInAnotherVersion},
		{"ConversionWebhookDown", conversionWebhookDown},
		{"DefinitionDeletedAndCreatedAgain", definitionDeletedAndCreatedAgain},
		{"RootDeletedDuringAHold", rootDeletedDuringAHold},
		{"DigestKeyLostDuringAHold", digestKeyLostDuringAHold},
		{"APIServerRestarted", apiServerRestarted},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			o := &outage{graphFixture: newGraphFixture(t, in), in: in, proxy: proxy}
			o.unserved = "Gadget"
			o.Secret("tls", fixture.Data{"k": "1"})
			o.make("Part", "leaf", `{secrets: [{name: tls}]}`)
			o.make("Part", "root", `{parts: [{name: leaf}]}`)
			o.web = o.tracks("web", theParts+"root")
			test.run(o)
		}) {
			return // something may be broken still
		}
	}
}

// start starts the program, and awaits that it has looked at everything.
func (o *outage) start() {
	o.Helper()
	require.NoError(o, o.in.StartAll(o.Patiently()))
	o.Settled()
}

func changedWhileTheControllerWasDown(o *outage) {
	o.Helper()
	require.NoError(o, o.in.StopAll(o.Context()))
	o.edit("Part", "leaf", `{"size":2}`)
	o.SetSecret("tls", "k", "2")
	o.edit("Part", "leaf", `{"size":3}`)
	o.edit("Part", "root", `{"size":2}`)
	o.start()
	o.rolls(o.web, "all of it at once")

	require.NoError(o, o.in.StopAll(o.Context()))
	o.edit("Part", "leaf", `{"size":4}`)
	o.edit("Part", "leaf", `{"size":3}`)
	o.remove(o.custom("Part", "root"), "root")
	o.make("Part", "root", `{parts: [{name: leaf}], size: 2}`)
	o.start()
	o.stays(o.web, "the same in the end")

	// It becomes invalid meanwhile, and valid again afterwards.
	require.NoError(o, o.in.StopAll(o.Context()))
	o.edit("Part", "leaf", `{"parts":[{"name":"root"}]}`)
	o.start()
	o.AwaitEvent(o.web, "ReferentHeld", "cycle")
	o.edit("Part", "leaf", `{"parts":null,"size":5}`)
	o.rolls(o.web, "it is valid again")
}

// The webhook does not stamp it: what is found when the program is back is adopted.
func createdWhileTheControllerWasDown(o *outage) {
	o.Helper()
	require.NoError(o, o.in.StopAll(o.Context()))
	created := o.tracksHeld("created", theParts+"root")
	o.SetSecret("tls", "k", "2")
	o.start()
	o.rolls(o.web, "it has changed meanwhile")
	o.AwaitAdopted(created, theParts+"root")
	o.stays(created, "its pods may have started with either")
	o.edit("Part", "leaf", `{"size":2}`)
	o.rolls(created, "it is known now")
	o.rolls(o.web, "the same graph")
}

func handedOverDuringAHold(o *outage) {
	o.Helper()
	o.edit("Part", "leaf", `{"parts":[{"name":"root"}]}`)
	o.AwaitEvent(o.web, "ReferentHeld", "cycle")
	o.SetSecret("tls", "k", "2")
	leader, err := o.in.Leader(o.Patiently())
	require.NoError(o, err)
	require.NoError(o, leader.Stop(o.Context()))
	o.start()
	o.stays(o.web, "the next leader holds it, too")
	o.Merge(o.Get(o.web), "web", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	o.rolls(o.web, "a release, which keeps the state")
	o.edit("Part", "leaf", `{"parts":null}`)
	o.rolls(o.web, "what has changed during the hold")
}

func handedOverInTheMiddleOfAChange(o *outage) {
	o.Helper()
	for n := range 3 {
		leader, err := o.in.Leader(o.Patiently())
		require.NoError(o, err)
		o.edit("Part", "leaf", fmt.Sprintf(`{"round":%d}`, n))
		require.NoError(o, leader.Stop(o.Context()))
		o.SetSecret("tls", "round", fmt.Sprint(n))
		o.start()
		o.AwaitChanges(o.web, o.rolled[o.web]+1, "the other one has seen it")
		o.Settled()
		// The settle time of the edit may have passed before the Secret was written.
		now := len(o.Watcher.Changes(o.web))
		require.LessOrEqual(o, now-o.rolled[o.web], 2)
		o.rolled[o.web] = now
	}
	o.edit("Part", "leaf", `{"round":null}`)
	o.rolls(o.web, "it still works")
}

func leaderKilledInTheMiddleOfAChange(o *outage) {
	o.Helper()
	leader, err := o.in.Leader(o.Patiently())
	require.NoError(o, err)
	o.edit("Part", "leaf", `{"size":7}`)
	leader.Kill()
	o.start()
	o.rolls(o.web, "the next leader has seen it")
	o.AwaitEvent(o.web, "Reloaded", theParts+"root modified")
}

func permissionsWithdrawnAndGivenBack(o *outage) {
	o.Helper()
	o.make("Gadget", "gadget", `{secretName: tls}`)
	other := o.tracks("other", "gadgets.chain.example.com/gadget")
	role := &rbacv1.ClusterRole{}
	require.NoError(o, o.Client.Get(o.Context(), client.ObjectKey{Name: "pod-reloader-referents"}, role))
	all := role.DeepCopy()
	role.Rules[0] = rbacv1.PolicyRule{
		APIGroups: []string{example}, Resources: []string{"parts", "legacyleaves", "legacyroots", "operateds"},
		Verbs: []string{"get", "list", "watch", "patch"},
	}
	require.NoError(o, o.Update(o.Context(), role))
	o.awaitNoPermission("gadgets")
	o.proxy.Break() // a watch that is open stays so until then
	o.edit("Gadget", "gadget", `{"size":2}`)
	o.AwaitEvent(other, "ReferentHeld", "gadgets.chain.example.com/gadget: forbidden")
	o.edit("Part", "leaf", `{"size":8}`)
	o.rolls(o.web, "the other resources go on")
	o.Merge(o.Get(other), "other", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	o.rolls(other, "a release, which keeps the state of the resource")

	patch := client.MergeFrom(role.DeepCopy())
	role.Rules = all.Rules
	require.NoError(o, o.Patch(o.Context(), role, patch))
	o.rolls(other, "what has changed meanwhile")
	o.edit("Gadget", "gadget", `{"size":3}`)
	o.rolls(other, "it works again")
}

// awaitNoPermission waits until the API server knows that the program may not list a resource.
func (o *outage) awaitNoPermission(resource string) {
	o.Helper()
	id := o.in.Identity()
	o.Await("the permission to list "+resource+" to be gone", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: id.User, Groups: id.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: example, Resource: resource},
		}}
		if err := o.Create(o.Context(), review); err != nil {
			return err
		}
		if review.Status.Allowed {
			return errors.New("it is there: " + review.Status.Reason)
		}
		return nil
	})
}

// While the resource is held, nothing can be compared or adopted. What is found at the end of the hold is adopted under the new
// key, as at any loss of the key.
func digestKeyLostDuringAHold(o *outage) {
	o.Helper()
	o.ConfigMap("plain", fixture.Data{"k": "1"})
	plain := o.Deployment("plain", fixture.Uses{ConfigMaps: []string{"plain"}})
	o.AwaitAdopted(plain, "configmap/plain")
	o.edit("Part", "leaf", `{"parts":[{"name":"root"}]}`)
	o.AwaitEvent(o.web, "ReferentHeld", "cycle")

	require.NoError(o, o.in.StopAll(o.Patiently()))
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.in.Namespace(), Name: "pod-reloader-digest-key"}}
	require.NoError(o, o.Delete(o.Context(), key))
	o.start()
	o.AwaitEvent(plain, "RecordAdopted", "is lost")
	o.stays(o.web, "the loss of the key is no change")
	o.edit("Part", "leaf", `{"parts":null,"size":20}`)
	o.AwaitEvent(o.web, "RecordAdopted", "is lost")
	o.stays(o.web, "what was found then is adopted")
	o.edit("Part", "leaf", `{"size":21}`)
	o.rolls(o.web, "a change under the new key")
	o.SetConfigMap("plain", "k", "2")
	o.AwaitChanges(plain, 1, "a change under the new key")
}

// What the workload names is deleted while something below it is invalid. Only a valid graph with the root restarts it.
func rootDeletedDuringAHold(o *outage) {
	o.Helper()
	o.edit("Part", "leaf", `{"parts":[{"name":"absent"}]}`)
	o.AwaitEvent(o.web, "ReferentHeld", theParts+"absent is missing")
	o.SetSecret("tls", "root", "1")
	o.remove(o.custom("Part", "root"), "root")
	o.AwaitEvent(o.web, "ReferentHeld", theParts+"root: missing")
	o.edit("Part", "leaf", `{"parts":null}`)
	o.stays(o.web, "what it names is gone")
	o.Merge(o.Get(o.web), "web", `{"spec":{"template":{"metadata":{"labels":{"release":"root"}}}}}`)
	o.rolls(o.web, "a release keeps the last valid state")
	o.make("Part", "root", `{parts: [{name: leaf}]}`)
	o.rolls(o.web, "the Secret has changed during the hold")
}

func apiServerRestarted(o *outage) {
	o.Helper()
	server := o.in.ControlPlane().Component(controlplane.APIServer)
	o.edit("Part", "leaf", `{"size":9}`)
	o.rolls(o.web, "before")
	require.NoError(o, server.Restart(o.Patiently()))
	o.Await("the API server", func() error {
		u := o.custom("Part", "leaf")
		return o.Patch(o.Context(), u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":10}}`)))
	})
	o.rolls(o.web, "just after")
	o.stays(o.web, "its absence of resources at the start is no removal of them")
	o.SetSecret("tls", "k", "after")
	o.rolls(o.web, "it works again")
}
