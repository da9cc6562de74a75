package watch_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestStoreOfABulkIsReadOnly(t *testing.T) {
	t.Parallel()
	store := newBulk(t, newServer(t), watch.Config{}).Store()
	_, writes := store.(interface {
		DeleteObject(namespace, name string) *unstructured.Unstructured
	})
	assert.False(t, writes, "a type assertion does not help")
	_, puts := store.(interface {
		Put(object *unstructured.Unstructured, keys ...watch.Key) (*unstructured.Unstructured, error)
	})
	assert.False(t, puts, "a type assertion does not help")
	own, err := watch.NewStore(1)
	require.NoError(t, err)
	_, err = own.Put(object("a"), watch.Key{"x"})
	require.NoError(t, err)
	reader := own.Reader()
	assert.Equal(t, 1, reader.Len())
	assert.Equal(t, object("a"), reader.Object("default", "a"))
	assert.Nil(t, reader.Object("default", "b"))
	assert.Equal(t, []string{"a"}, names(reader.Get("x")))
	assert.Empty(t, reader.Get("y"))
	assert.Equal(t, []string{"a"}, names(reader.List()))
}
