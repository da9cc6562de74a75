package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A stamp for another object keeps the recorded version of a SecretProviderClass where the pods that are left have an older
// one: the next pods do not get that, and the rotation of the others must not restart them.
func TestStampKeepsLaterVersionOfSecretProviderClass(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "1")
	key, _ := ring.Newest()
	class := reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}
	state := func(ref reference.Ref, content, resourceVersion string) digest.State {
		return digest.StateOf(digest.OfObjects(ref, "ns", map[string]string{"k": content}), "uid", resourceVersion, ring)
	}
	intent := annotation.Intent{Asked: true, Tracked: map[reference.Ref]annotation.Trigger{cm("app"): {}, class: {}}}
	states := map[reference.Ref]digest.State{cm("app"): state(cm("app"), "1", "8"), class: state(class, "2", "10")}
	hash, err := digest.Hash(key.ID, states)
	require.NoError(t, err)
	rec, err := policy.NewRecord(policy.Input{Intent: intent, Current: states, Ring: ring}, hash, false)
	require.NoError(t, err)
	text, _ := rec.Text(record.MaxSize)
	view := View{Intent: intent, Managed: Managed{Hash: hash, Record: text}, TemplateBudget: 1 << 10, WorkloadBudget: 1 << 10}
	request := Write{Old: view, New: view, TemplateChanged: true}
	request.Old.version = "12"
	apply := func(app string, left digest.State) Result {
		inputs := Inputs{Namespace: "ns", Ring: ring, States: map[reference.Ref]digest.State{cm("app"): state(cm("app"), app, "9"), class: left}}
		return Choose(request).Apply(request, inputs)
	}

	left := state(class, "1", "5")
	left.Mounted = true
	assert.Equal(t, view.Managed, apply("1", left).Managed, "a release while a pod with the version from before is left")
	result := apply("2", left)
	require.Equal(t, []policy.Change{{Ref: cm("app"), Type: policy.Modified}}, result.Changes)
	stamped, err := record.Parse(result.Managed[Record])
	require.NoError(t, err)
	assert.Equal(t, rec.Items([]reference.Ref{class}), stamped.Items([]reference.Ref{class}), "it is the version that the next pods mount")
	assert.Equal(t, []policy.Change{{Ref: class, Type: policy.Modified}}, apply("1", state(class, "3", "11")).Changes, "a later rotation counts")

	request.Old.version = "7"
	result = apply("1", state(class, "3", "6"))
	assert.Equal(t, []policy.Change{{Ref: class, Type: policy.Modified}}, result.Changes,
		"a rotation counts where the Record comes from another cluster, with later versions")
	assert.Contains(t, result.Managed[Record], "@6", "the next one is compared with it")
}
