package digest_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

func testKey(t testing.TB) digest.Key {
	t.Helper()
	key, ok := ringOf(t, map[string][]byte{"key": secretOf('k')}).Newest()
	require.True(t, ok, "the ring has a key")
	return key
}

func configMapOf(data map[string]string, binary map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"},
		Data:       data, BinaryData: binary,
	}
}

func secretWith(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Data: data}
}

// TestEntryOfEqualContent: whatever is not content does not count.
func TestEntryOfEqualContent(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	tests := map[string]struct {
		reason string
		change func(*corev1.ConfigMap)
	}{
		"labels":          {reason: "A label edit restarts nothing.", change: func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} }},
		"annotations":     {reason: "An annotation edit restarts nothing.", change: func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} }},
		"managed fields":  {reason: "Server-side apply writes them.", change: func(c *corev1.ConfigMap) { c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }},
		"revision":        {reason: "Every write changes it.", change: func(c *corev1.ConfigMap) { c.ResourceVersion = "2" }},
		"uid":             {reason: "Deleted and created again with equal content.", change: func(c *corev1.ConfigMap) { c.UID = "other" }},
		"immutable":       {reason: "It says nothing about the content.", change: func(c *corev1.ConfigMap) { c.Immutable = new(true) }},
		"empty, not nil":  {reason: "The API returns either.", change: func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{} }},
		"order of keys":   {reason: "A map has none.", change: func(c *corev1.ConfigMap) { c.Data = map[string]string{"b": "2", "a": "1"} }},
		"another copy":    {reason: "Reads return fresh objects.", change: func(c *corev1.ConfigMap) { c.Data = maps.Clone(c.Data) }},
		"owner":           {reason: "Who owns it says nothing about the content.", change: func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }},
		"being deleted":   {reason: "It is still there.", change: func(c *corev1.ConfigMap) { c.DeletionTimestamp = &metav1.Time{} }},
		"type of a value": {reason: "Control: nothing at all is changed.", change: func(*corev1.ConfigMap) {}},
	}
	want := digest.OfConfigMap(configMapOf(map[string]string{"a": "1", "b": "2"}, nil)).Entry(key)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := configMapOf(map[string]string{"a": "1", "b": "2"}, nil)
			tc.change(object)
			assert.Equal(t, want, digest.OfConfigMap(object).Entry(key), tc.reason)
		})
	}
	secret := secretWith(map[string][]byte{"a": []byte("1")})
	typed := secret.DeepCopy()
	typed.Type, typed.StringData = corev1.SecretTypeOpaque, map[string]string{"b": "2"}
	assert.Equal(t, digest.OfSecret(secret).Entry(key), digest.OfSecret(typed).Entry(key),
		"neither the type nor stringData, which the API never returns, count")
}

// TestEntryOfOtherContent: no two of these are mistaken for each other.
func TestEntryOfOtherContent(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	renamed := configMapOf(map[string]string{"a": "1"}, nil)
	renamed.Name = "app2"
	moved := configMapOf(map[string]string{"a": "1"}, nil)
	moved.Namespace = "other"
	shifted := configMapOf(map[string]string{"a": "1"}, nil)
	shifted.Namespace, shifted.Name = "defaul", "tapp"
	contents := map[string]digest.Content{
		"the plain one":                   digest.OfConfigMap(configMapOf(map[string]string{"a": "1"}, nil)),
		"another value":                   digest.OfConfigMap(configMapOf(map[string]string{"a": "2"}, nil)),
		"another key":                     digest.OfConfigMap(configMapOf(map[string]string{"b": "1"}, nil)),
		"no key":                          digest.OfConfigMap(configMapOf(nil, nil)),
		"an empty value":                  digest.OfConfigMap(configMapOf(map[string]string{"a": ""}, nil)),
		"one key more":                    digest.OfConfigMap(configMapOf(map[string]string{"a": "1", "b": "2"}, nil)),
		"one key that looks like two":     digest.OfConfigMap(configMapOf(map[string]string{"a": "1;b=2"}, nil)),
		"the end of a key in the value":   digest.OfConfigMap(configMapOf(map[string]string{"ab": "c"}, nil)),
		"the start of a value in a key":   digest.OfConfigMap(configMapOf(map[string]string{"a": "bc"}, nil)),
		"in binaryData":                   digest.OfConfigMap(configMapOf(nil, map[string][]byte{"a": []byte("1")})),
		"a Secret":                        digest.OfSecret(secretWith(map[string][]byte{"a": []byte("1")})),
		"another name":                    digest.OfConfigMap(renamed),
		"another namespace":               digest.OfConfigMap(moved),
		"the namespace's end in the name": digest.OfConfigMap(shifted),
		"a value longer than the buffer":  digest.OfConfigMap(configMapOf(map[string]string{"a": strings.Repeat("1", 1024)}, nil)),
		"a value longer by one":           digest.OfConfigMap(configMapOf(map[string]string{"a": strings.Repeat("1", 1025)}, nil)),
		"a new line at the end":           digest.OfConfigMap(configMapOf(map[string]string{"a": "1\n"}, nil)),
	}
	seen := map[digest.Entry]string{}
	for name, content := range contents {
		entry := content.Entry(key)
		assert.Equal(t, entry, content.Entry(key), "an Entry is a function of the content")
		other, collides := seen[entry]
		assert.False(t, collides, "%s and %s", name, other)
		seen[entry] = name
	}
}

func TestContentShowsNoPayload(t *testing.T) {
	t.Parallel()
	content := digest.OfSecret(secretWith(map[string][]byte{"password": []byte("hunter2")}))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.Equal(t, "content of secret/app in default", fmt.Sprintf(verb, content))
	}
}

// FuzzEntry: two contents have the same Entry only if they are the same.
func FuzzEntry(f *testing.F) {
	f.Add("a", "1", "b", "2", "a", "1;b=2")
	f.Add("a", "", "a", "", "", "a")
	f.Add("a", "b", "ab", "", "a", "b")
	f.Add("data", "binaryData", "binaryData", "data", "", "")
	key := testKey(f)
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, k3, v3 string) {
		a, b := map[string]string{k1: v1, k2: v2}, map[string]string{k3: v3}
		entry := digest.OfConfigMap(configMapOf(a, nil)).Entry(key)
		other := digest.OfConfigMap(configMapOf(b, nil)).Entry(key)
		assert.Equal(t, maps.Equal(a, b), entry == other, "%q and %q", a, b)

		binary := map[string][]byte{}
		for k, v := range a {
			binary[k] = []byte(v)
		}
		assert.NotEqual(t, entry, digest.OfConfigMap(configMapOf(nil, binary)).Entry(key), "the field counts")
		secret := digest.OfSecret(secretWith(binary)).Entry(key)
		assert.NotEqual(t, entry, secret, "the kind counts")
		assert.NotEqual(t, secret, digest.OfConfigMap(configMapOf(nil, binary)).Entry(key), "the kind counts")
	})
}

func BenchmarkContentEntry(b *testing.B) {
	key := testKey(b)
	for name, size := range map[string]int{"1kB": 1 << 10, "100kB": 100 << 10, "1MB": 1 << 20} {
		content := digest.OfSecret(secretWith(map[string][]byte{"a": bytes.Repeat([]byte("x"), size/2), "b": make([]byte, size/2)}))
		b.Run("Secret/"+name, func(b *testing.B) { benchmarkEntry(b, content, key, size) })
		content = digest.OfConfigMap(configMapOf(map[string]string{"a": strings.Repeat("x", size/2), "b": strings.Repeat("y", size/2)}, nil))
		b.Run("ConfigMap/"+name, func(b *testing.B) { benchmarkEntry(b, content, key, size) })
	}
}

func benchmarkEntry(b *testing.B, content digest.Content, key digest.Key, size int) {
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		content.Entry(key)
	}
}

func TestEntryUnderNoKey(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { digest.OfConfigMap(configMapOf(nil, nil)).Entry(digest.Key{}) },
		"an unkeyed digest of a secret must never come about by mistake")
}
