package poke_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/poke"
)

func TestRevisionIsSAPsDigest(t *testing.T) {
	t.Parallel()
	object := func(name, uid, version string) metav1.Object {
		return &metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), ResourceVersion: version}
	}
	for name, tc := range map[string]struct {
		configMaps, secrets []metav1.Object
		text                string
	}{
		"no object":      {text: ""},
		"both kinds":     {[]metav1.Object{object("app", "u1", "7")}, []metav1.Object{object("app", "u2", "8")}, "configmap/shop/app/u1.7\nsecret/shop/app/u2.8\n"},
		"in their order": {[]metav1.Object{object("b", "u1", "1"), object("a", "u2", "2")}, nil, "configmap/shop/b/u1.1\nconfigmap/shop/a/u2.2\n"},
		"listed twice":   {nil, []metav1.Object{object("a", "u", "1"), object("a", "u", "1")}, "secret/shop/a/u.1\nsecret/shop/a/u.1\n"},
		"absent":         {[]metav1.Object{object("app", "", "")}, nil, "configmap/shop/app/\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := sha256.Sum256([]byte(tc.text))
			assert.Equal(t, hex.EncodeToString(sum[:]), poke.Revision("shop", tc.configMaps, tc.secrets))
		})
	}
}
