package digest_test

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestSHA1IsThatOfReloader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content digest.Content
		text    string // what Reloader hashes
		golden  string
	}{
		"one key": {
			digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"test.url": "www.google.com"}}),
			"test.url=www.google.com", "2834cb2f26ce41acf3a5c4c63b1815df75bae06e",
		},
		"no key": {
			digest.OfConfigMap(&corev1.ConfigMap{}), "", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		},
		"pairs are sorted with their separator": {
			digest.OfConfigMap(&corev1.ConfigMap{
				Data:       map[string]string{"a": "1", "a-b": "2", "a.b": "3", "aa": "4"},
				BinaryData: map[string][]byte{"a0": {0xff, 0x00}},
			}),
			"a-b=2;a.b=3;a0=/wA=;a=1;aa=4", "",
		},
		"a SecretProviderClass": {
			digest.OfObjects(reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}, "ns", map[string]string{"b": "2", "secret/a": "1"}),
			"SecretProviderClassName=vault;b=2;secret/a=1", "",
		},
		"a Secret": {
			digest.OfSecret(&corev1.Secret{Data: map[string][]byte{"k": []byte("v"), "b": {'1'}}}), "b=1;k=v", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := sha1.Sum([]byte(c.text))
			assert.Equal(t, hex.EncodeToString(sum[:]), c.content.SHA1())
			if c.golden != "" {
				assert.Equal(t, c.golden, c.content.SHA1())
			}
		})
	}
}
