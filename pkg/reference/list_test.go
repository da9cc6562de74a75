package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestListCountsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	a, b, c := reference.Ref{Kind: reference.ConfigMap, Name: "a"}, reference.Ref{Kind: reference.ConfigMap, Name: "b"}, reference.Ref{Kind: reference.Secret, Name: "c"}
	assert.Empty(t, reference.List[reference.Ref](nil, 2))
	assert.Equal(t, "configmap/a", reference.List([]reference.Ref{a}, 2))
	assert.Equal(t, "configmap/a, configmap/b", reference.List([]reference.Ref{a, b}, 2))
	assert.Equal(t, "configmap/a, configmap/b and 1 more", reference.List([]reference.Ref{a, b, c}, 2))
}
