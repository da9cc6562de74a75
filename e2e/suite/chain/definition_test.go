package chain_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// The configuration names a version that the cluster stops to serve. The objects are stored in another one.
func versionNoLongerServed(o *outage) {
	o.Helper()
	const theGadget = "gadgets.chain.example.com/served"
	o.make("Gadget", "served", `{secretName: tls}`)
	served := o.tracks("served", theGadget)
	o.serve("false")
	o.AwaitEvent(served, "ReferentHeld", theGadget+": not-installed", "in version v1beta1")
	o.edit("Gadget", "served", `{"size":2}`)
	o.SetSecret("tls", "served", "1")
	o.rolls(o.web, "the other resources go on")
	o.stays(served, "what has changed cannot be read")
	why, err := o.in.Why(o.Context(), "deployment/served", "-n", o.Namespace, fromSettings)
	require.NoError(o, err)
	require.Contains(o, why, "not-installed")
	o.serve("true")
	o.rolls(served, "it is served again")

	o.serve("false")
	o.edit("Gadget", "served", `{"size":3}`)
	text, err := settings()
	require.NoError(o, err)
	migrated := strings.Replace(text, "version: v1beta1, resource: gadgets", "version: v1, resource: gadgets", 1)
	require.NotEqual(o, text, migrated)
	require.NoError(o, o.in.ControlPlane().Apply(o.Context(), migrated))
	o.rolls(served, "the configuration names the stored version")
	o.stays(o.web, "another version of one resource is no change of others")
	o.SetSecret("tls", "served", "2")
	o.rolls(served, "it works in that version")
	o.rolls(o.web, "the same Secret")
	o.serve("true")
	require.NoError(o, o.in.ControlPlane().Apply(o.Context(), text))
	o.Settled()
}

// serve makes the cluster serve v1beta1 of the gadgets, or not.
func (o *outage) serve(yes string) {
	o.Helper()
	o.redefine(`[{"op":"test","path":"/spec/versions/0/name","value":"v1beta1"},{"op":"replace","path":"/spec/versions/0/served","value":` + yes + `}]`)
}

// redefine patches the definition of the gadgets.
func (o *outage) redefine(patch string) {
	o.Helper()
	require.NoError(o, o.Patch(o.Context(), gadgetDefinition(), client.RawPatch(types.JSONPatchType, []byte(patch))))
}

func gadgetDefinition() *unstructured.Unstructured {
	return controlplane.DefinitionNamed("gadgets." + example)
}

// An administrator migrates a resource: it is stored in another version, and each object is written once without a change.
func storedInAnotherVersion(o *outage) {
	o.Helper()
	o.make("Gadget", "stored", `{secretName: tls}`)
	stored := o.tracks("stored", "gadgets.chain.example.com/stored")
	for n, newest := range []int{0, 1} {
		o.redefine(fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/%d/storage","value":false},{"op":"replace","path":"/spec/versions/%d/storage","value":true}]`, 1-newest, newest))
		require.NoError(o, o.Update(o.Context(), o.read("Gadget", "stored")))
		o.stays(stored, "the content is the same")
		o.edit("Gadget", "stored", fmt.Sprintf(`{"size":%d}`, n))
		o.rolls(stored, "it still works")
	}
}

// The objects cannot be converted into the version of the configuration: neither read nor written. What was known of them stays in
// force, with whatever else changes below it.
func conversionWebhookDown(o *outage) {
	o.Helper()
	o.make("Gadget", "converted", `{secretName: tls}`)
	converted := o.tracks("converted", "gadgets.chain.example.com/converted")
	o.redefine(`[{"op":"replace","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{
		"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}}]`)
	o.Await("the conversion to fail", func() error {
		old := o.custom("Gadget", "converted")
		old.SetAPIVersion(example + "/v1beta1")
		if err := o.Client.Get(o.Context(), client.ObjectKeyFromObject(old), old); err == nil {
			return errors.New("it is read")
		}
		return nil
	})
	o.proxy.Break() // a list that fails follows
	o.SetSecret("tls", "converted", "1")
	o.rolls(o.web, "the other resources go on")
	o.rolls(converted, "the Secret below it has changed")
	o.Merge(o.Get(converted), "converted", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	o.rolls(converted, "a release keeps what is known")
	o.edit("Gadget", "converted", `{"size":2}`)
	o.stays(converted, "the edit cannot be read")

	o.redefine(`[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	o.rolls(converted, "the edit can be read")
}

func definitionDeletedAndCreatedAgain(o *outage) {
	o.Helper()
	o.make("Gadget", "again", `{secretName: tls}`)
	again := o.tracks("again", "gadgets.chain.example.com/again")
	for n := range 2 {
		require.NoError(o, o.Delete(o.Context(), gadgetDefinition()))
		o.Await("the deletion", func() error {
			if err := o.Client.Get(o.Context(), client.ObjectKey{Name: "gadgets." + example}, gadgetDefinition()); err == nil {
				return errors.New("it is there")
			}
			return nil
		})
		if n == 1 {
			o.AwaitEvent(again, "ReferentHeld", "gadgets.chain.example.com/again: not-installed")
			o.SetSecret("tls", "again", "1")
			o.rolls(o.web, "the other resources go on")
			o.stays(again, "it is held")
		}
		require.NoError(o, o.in.ControlPlane().Apply(o.Context(), definition("Gadget")))
		o.Await("the object", func() error {
			gadget := o.custom("Gadget", "again")
			gadget.Object["spec"] = map[string]any{"secretName": "tls"}
			return o.Create(o.Context(), gadget)
		})
		if n == 0 {
			o.stays(again, "the same definition with the same object")
		} else {
			o.rolls(again, "the Secret has changed meanwhile")
		}
	}
	o.edit("Gadget", "again", `{"size":2}`)
	o.rolls(again, "it is watched again")
}
