package app

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/keyring"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
)

// By server-side apply, an installation would remove the annotations of another one with the same owner.
func TestEachInstallationOwnsItsDigests(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60)
	owners := map[string]bool{}
	for _, of := range [][2]string{{"pod-reloader", "pod-reloader"}, {"team", "pod-reloader"}, {"team", "second"}, {long, long + "1"}, {long, long + "2"}} {
		owner := referentOwner(of[0], of[1])
		assert.LessOrEqual(t, len(owner), validation.FieldManagerMaxLength)
		assert.Contains(t, owner, "-referents")
		owners[owner] = true
	}
	assert.Len(t, owners, 5)
}

func TestChainIgnoresReferencesToKindsThatAreNotHandled(t *testing.T) {
	t.Parallel()
	certificates := []referent.Definition{{
		ID: "certificates", GVR: schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"},
		Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secretName"}},
	}}
	for without, ignored := range map[bool][]string{false: nil, true: {"referents[0].refs[0] (to: secrets)"}} {
		b := &builder{options: options.Options{Selection: options.Selection{WithoutSecrets: without}}, keys: &keyring.Keyring{}}
		c, err := b.buildChain()
		require.NoError(t, err)
		assert.Equal(t, ignored, c.Configure(certificates))
	}
}

func TestDigestsArePublishedInScope(t *testing.T) {
	t.Parallel()
	of := func(s scope.Scope) *builder {
		return &builder{options: options.Options{Selection: options.Selection{Scope: s}}}
	}
	assert.True(t, of(scope.Scope{}).publishes("shop"), "all namespaces are in scope")
	assert.True(t, of(scope.Scope{}).publishes(""), "an object without namespace")
	assert.False(t, of(scope.Scope{}).publishes(scope.System), "the namespace of the system is not in scope")
	assert.False(t, of(scope.Scope{Ignored: []string{"shop"}}).publishes("shop"), "the namespace is ignored")
	selector := labels.SelectorFromSet(labels.Set{"team": "a"})
	assert.False(t, of(scope.Scope{NamespaceSelector: selector}).publishes("shop"), "its labels are not known yet")
}

func TestReferencesThatAreIgnoredHaveAnEvent(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kroxylicious.io/v1alpha1")
	object.SetKind("VirtualKafkaCluster")
	object.SetNamespace("shop")
	object.SetName("orders")
	reportIgnored(r)(object, `referents[2].referrers[0]: "100%d" names no object`)
	require.Len(t, r.messages, 1)
	e := r.messages[0].Event
	assert.Equal(t, []string{"Warning", "ReferenceIgnored", "shop"}, []string{e.Type, e.Reason, e.Namespace})
	assert.Contains(t, e.Note, `are ignored, so that no workload restarts because of them: referents[2].referrers[0]: "100%d" names no object`)

	object.SetNamespace("")
	reportIgnored(r)(object, "refused")
	assert.Len(t, r.messages, 1, "the permission may be missing")
}
