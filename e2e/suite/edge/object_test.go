package edge_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

func TestChangeOfBinaryDataRestartsOnce(t *testing.T) {
	t.Parallel()
	s := stage(t)
	binary := s.ConfigMap("binary", nil)
	binary.BinaryData = map[string][]byte{"blob": {0, 1, 254, 255}}
	require.NoError(t, s.Update(t.Context(), binary))
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"binary"}, Unread: true})
	binary.BinaryData["blob"] = []byte{0, 1, 254, 254}
	require.NoError(t, s.Update(t.Context(), binary))
	s.AwaitExactly(1, "one bit of binaryData changed", workloads...)
}

// Immutable objects cannot be changed; they are replaced by others of the same name. The pods need both, so that nothing
// restarts while one of them is away.
func TestImmutableObjectsAreReplaced(t *testing.T) {
	t.Parallel()
	s := stage(t)
	immutable := true
	replace := func(value string) {
		t.Helper()
		meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: "fixed"}
		for _, object := range []client.Object{&corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}} {
			require.NoError(t, client.IgnoreNotFound(s.Delete(t.Context(), object)), "at first there is none")
		}
		require.NoError(t, s.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Immutable: &immutable, Data: fixture.Data{"key": value}}))
		require.NoError(t, s.Create(t.Context(), &corev1.Secret{ObjectMeta: meta, Immutable: &immutable, StringData: fixture.Data{"key": value}}))
	}
	replace("1")
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"fixed"}, Secrets: []string{"fixed"}})
	replace("1")
	s.AwaitExactly(0, "replaced by the same content", workloads...)
	replace("2")
	s.AwaitExactly(1, "both objects were replaced by others", workloads...)
}

// The largest Secret that the API takes.
func TestSecretOfOneMebibyte(t *testing.T) {
	t.Parallel()
	s := stage(t)
	content := make([]byte, corev1.MaxSecretSize)
	_, err := rand.Read(content)
	require.NoError(t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "large"}, Data: map[string][]byte{"blob": content}}
	require.NoError(t, s.Create(t.Context(), secret))
	workloads := s.EveryKind("web", fixture.Uses{Secrets: []string{"large"}, Unread: true})
	for _, w := range workloads {
		if created := s.Get(w); fixture.TemplateAnnotations(created)[fixture.ConfigHash] != "" {
			assert.Contains(t, created.GetAnnotations()[fixture.ConfigRecord], "secret/large=", "%s is stamped, in time for the API server", w)
		}
		s.AwaitAdopted(w, "secret/large") // where the webhook had no time to read it
	}
	secret.Data["blob"][corev1.MaxSecretSize-1] ^= 1
	require.NoError(t, s.Update(t.Context(), secret))
	s.AwaitExactly(1, "the last bit of a Secret of 1 MiB changed", workloads...)
}

func TestTwoHundredReferencesOnOneWorkload(t *testing.T) {
	t.Parallel()
	s := stage(t)
	uses := fixture.Uses{}
	for n := range 100 {
		name := fmt.Sprintf("config-%03d", n)
		s.ConfigMap(name, fixture.Data{"key": "1"})
		s.Secret(name, fixture.Data{"key": "1"})
		uses.ConfigMaps = append(uses.ConfigMaps, name)
		uses.Secrets = append(uses.Secrets, name)
	}
	w := s.Deployment("web", uses)
	created := s.Get(w)
	for _, ref := range []string{"configmap/config-000", "secret/config-099"} {
		if fixture.TemplateAnnotations(created)[fixture.ConfigHash] != "" {
			assert.Contains(t, created.GetAnnotations()[fixture.ConfigRecord], ref+"=", "each of the 200 is recorded by name")
		}
		s.AwaitAdopted(w, ref) // where the webhook had no time to read 200 objects
	}

	s.SetSecret("config-099", "key", "2")
	s.AwaitChanges(w, 1, "one of 200 changed")
	s.AwaitEvent(w, "Reloaded", "secret/config-099 modified")
	s.SetConfigMap("config-000", "key", "2")
	s.AwaitChanges(w, 2, "another one of 200 changed")
	s.AwaitEvent(w, "Reloaded", "configmap/config-000 modified")
	s.AwaitExactly(2, "each change is one restart", w)
}

// Names of objects may have dots and be as long as a domain name.
func TestChangeOfObjectWithDotsInItsNameRestartsOnce(t *testing.T) {
	t.Parallel()
	s := stage(t)
	names := []string{"app.example.com", "a.b", "0.1.2-3.x"}
	for _, name := range names {
		s.ConfigMap(name, fixture.Data{"key": "1"})
		s.Secret(name, fixture.Data{"key": "1"})
	}
	uses := fixture.Uses{ConfigMaps: names, Secrets: names}
	workloads := append(s.EveryKind("web", uses), s.Deployment("web.example.com", uses))
	for n, name := range names {
		s.SetConfigMap(name, "key", "2")
		for _, w := range workloads {
			s.AwaitChanges(w, 2*n+1, "configmap/"+name+" changed")
			s.AwaitEvent(w, "Reloaded", "configmap/"+name+" modified")
		}
		s.SetSecret(name, "key", "2")
		for _, w := range workloads {
			s.AwaitChanges(w, 2*n+2, "secret/"+name+" changed")
		}
	}
	s.AwaitExactly(2*len(names), "each change is one restart", workloads...)
}

func TestSameNameInTwoNamespacesAreTwoObjects(t *testing.T) {
	t.Parallel()
	one, two := stage(t), stage(t)
	for _, s := range []*fixture.Fixture{one, two} {
		s.ConfigMap("app", fixture.Data{"key": "1"})
		s.Secret("app", fixture.Data{"key": "1"})
	}
	uses := fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"app"}}
	here, there := one.EveryKind("web", uses), two.EveryKind("web", uses)
	one.SetConfigMap("app", "key", "2")
	one.AwaitExactly(1, "the ConfigMap of its namespace changed", here...)
	two.AwaitExactly(0, "another namespace's ConfigMap of that name changed", there...)
	two.SetSecret("app", "key", "2")
	two.AwaitExactly(1, "the Secret of its namespace changed", there...)
	for _, w := range here {
		one.AssertChanges(w, 1, "another namespace's Secret of that name changed")
	}
}
