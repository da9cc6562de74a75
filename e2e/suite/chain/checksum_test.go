package chain_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

const legacyChecksum = "kroxylicious.io/referent-checksum"

// kroxylicious computes a checksum from the objects as the API server has them, in the order of the references: written
// anew for this test, from what the operator does.
func (s *graphFixture) kroxylicious(referents ...client.Object) string {
	s.Helper()
	crc := crc32.NewIEEE()
	for _, object := range referents {
		require.NoError(s, s.Client.Get(s.Context(), client.ObjectKeyFromObject(object), object))
		_, _ = crc.Write([]byte(object.GetUID()))
		if object.GetGeneration() != 0 {
			require.NoError(s, binary.Write(crc, binary.BigEndian, object.GetGeneration()))
		} else {
			_, _ = crc.Write([]byte(object.GetResourceVersion()))
		}
		_, _ = crc.Write([]byte(object.GetAnnotations()[legacyChecksum]))
	}
	return base64.RawStdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(crc.Sum32())))
}

func TestTheChecksumsOfKroxyliciousAreReproduced(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	secret := func(name string) client.Object {
		object := &corev1.Secret{}
		object.Namespace, object.Name = s.Namespace, name
		return object
	}
	agree := func(why string) {
		s.Await("the checksums of Kroxylicious "+why, func() error {
			leaf, root := s.read("LegacyLeaf", "leaf"), s.read("LegacyRoot", "root")
			return errors.Join(
				same("leaf", s.kroxylicious(secret("b"), secret("a")), leaf),
				same("root", s.kroxylicious(leaf, s.custom("LegacyLeaf", "bare")), root))
		})
	}
	s.Secret("a", fixture.Data{"k": "1"})
	s.Secret("b", fixture.Data{"k": "1"})
	s.make("LegacyLeaf", "leaf", `{secrets: [{name: b}, {name: a}]}`)
	s.make("LegacyLeaf", "bare", `{size: 1}`)
	s.make("LegacyRoot", "root", `{leaves: [{name: leaf}, {name: bare}]}`)
	w := s.tracks("web", "legacyroots.chain.example.com/root")
	agree("at first")
	require.Empty(t, s.read("LegacyLeaf", "bare").GetAnnotations()[legacyChecksum], "there is none where nothing is referred to")

	s.SetSecret("a", "k", "2")
	s.rolls(w, "a Secret")
	agree("after an edit of a Secret")
	s.edit("LegacyLeaf", "bare", `{"size":2}`)
	s.rolls(w, "a leaf")
	agree("after an edit of a leaf, by its generation")
	s.Merge(&corev1.Secret{}, "b", `{"metadata":{"labels":{"a":"b"}}}`)
	s.rolls(w, "the resourceVersion of a Secret counts there")
	agree("after an edit of labels")
}

func same(name, want string, object *unstructured.Unstructured) error {
	if got := object.GetAnnotations()[legacyChecksum]; got != want {
		return fmt.Errorf("%s has %q, want %q", name, got, want)
	}
	return nil
}

// The division of labour of the proposal: another controller judges the leaf and publishes its checksum.
func TestTheChecksumOfAnotherControllerIsTaken(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	publish := func(checksum string) {
		s.Merge(s.custom("Operated", "web"), "web", `{"metadata":{"annotations":{"operator.example.com/checksum":"`+checksum+`"}}}`)
	}
	s.make("Operated", "web", `{size: 1}`)
	publish("AAAAAHM+5SM")
	w := s.tracks("web", "operateds.chain.example.com/web")
	s.edit("Operated", "web", `{"size":2}`)
	s.stays(w, "the other controller has not published")
	publish("AAAAAHM+5SN")
	s.rolls(w, "it has")
	publish("AAAAAHM+5SN")
	s.Merge(s.custom("Operated", "web"), "web", `{"metadata":{"annotations":{"another":"1"}}}`)
	s.stays(w, "the same checksum")
	publish("AAAAAHM+5SO")
	s.rolls(w, "another one")
}

// The definition stores v1 and serves v1beta1, too, which is the one that the configuration names.
func TestAResourceInTwoVersions(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.Secret("tls", fixture.Data{"k": "1"})
	s.make("Gadget", "gadget", `{secretName: tls}`)
	w := s.tracks("web", "gadgets.chain.example.com/gadget")
	s.edit("Gadget", "gadget", `{"size":2}`)
	s.rolls(w, "an edit in the stored version")
	old := s.custom("Gadget", "gadget")
	old.SetAPIVersion(example + "/v1beta1")
	s.Merge(old, "gadget", `{"spec":{"size":3}}`)
	s.rolls(w, "an edit in the version of the configuration")
	s.SetSecret("tls", "k", "2")
	s.rolls(w, "the Secret")
	s.Await("the published digest", func() error {
		if got := s.read("Gadget", "gadget").GetAnnotations()["pod-reloader.cs.sap.com/referent-checksum"]; got == "" {
			return errors.New("there is none")
		}
		return nil
	})
	s.Merge(s.custom("Gadget", "gadget"), "gadget", `{"metadata":{"labels":{"a":"b"}}}`)
	s.stays(w, "labels do not count in any version")
	s.remove(s.custom("Gadget", "gadget"), "gadget")
	s.make("Gadget", "gadget", `{secretName: tls, size: 3}`)
	s.stays(w, "the same, made anew")
	s.edit("Gadget", "gadget", `{"size":4}`)
	s.rolls(w, "it still works")
}
