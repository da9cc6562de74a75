package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMissingTemplateIsExplained(t *testing.T) {
	t.Parallel()
	kind, err := ParseKind("argoproj.io/v1alpha1/Rollout=spec.template")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		spec map[string]any
		want string
	}{
		"none at all":                {map[string]any{}, "there is no pod template at spec.template"},
		"that of another workload":   {map[string]any{"workloadRef": map[string]any{"name": "web"}}, "the pod template is that of the workload at spec.workloadRef, where the annotations belong"},
		"both, until it is resolved": {map[string]any{"workloadRef": map[string]any{"name": "web"}, "template": map[string]any{}}, ""},
	} {
		err := Object{Kind: kind, Raw: map[string]any{"spec": tc.spec}}.Check()
		if tc.want == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.EqualError(t, err, tc.want, name)
	}
}
