package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestOutlineHasTheAnnotations(t *testing.T) {
	t.Parallel()
	annotations := world.Object{"annotations": world.Object{"a": "b"}}
	for name, test := range map[string]struct {
		raw  string
		want world.Object
	}{
		"of a Deployment": {
			`{"metadata":{"name":"cart","annotations":{"a":"b"}},"spec":{"replicas":1,"template":{"metadata":{"labels":{"c":"d"},"annotations":{"a":"b"}},"spec":{"containers":[{}]}}}}`,
			world.Object{"metadata": annotations, "spec": world.Object{"template": world.Object{"metadata": annotations}}},
		},
		"of a CronJob": {
			`{"metadata":{},"spec":{"jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}}}`,
			world.Object{"metadata": world.Object{}, "spec": world.Object{"jobTemplate": world.Object{"spec": world.Object{"template": world.Object{"metadata": annotations}}}}},
		},
		"empty metadata": {
			`{"metadata":{"annotations":{}},"spec":{"template":{"metadata":{}}}}`,
			world.Object{"metadata": world.Object{"annotations": world.Object{}}, "spec": world.Object{"template": world.Object{"metadata": world.Object{}}}},
		},
		"no template": {`{"spec":{}}`, world.Object{"spec": world.Object{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := outline([]byte(test.raw))
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	_, err := outline([]byte(`[]`))
	assert.Error(t, err)
}
