package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"configmap", "configmap", 0},
		{"configmap", "configmaps", 1}, // insert at the end
		{"configmap", "onfigmap", 1},   // delete at the start
		{"configmap", "confagmap", 1},  // replace
		{"configmap", "ocnfigmap", 2},  // swapped letters are two replaced ones
		{"kitten", "sitting", 3},
		{"abc", "xyz", 3},
		{"abcd", "bcda", 2}, // delete and insert, instead of four replaced ones
	} {
		assert.Equal(t, tc.want, reference.EditDistance(tc.a, tc.b), "%q, %q", tc.a, tc.b)
		assert.Equal(t, tc.want, reference.EditDistance(tc.b, tc.a), "%q, %q", tc.b, tc.a)
	}
}

func TestOwnerIsNamedWithItsGroup(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "Node/a", reference.Owner{Kind: "Node", Name: "a"}.String(), "the core group has no name")
	assert.Equal(t, "KafkaProxy.kroxylicious.io/my-proxy", reference.Owner{Group: "kroxylicious.io", Kind: "KafkaProxy", Name: "my-proxy"}.String())
}
