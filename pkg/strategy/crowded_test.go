package strategy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// withVariables is a template of two containers with some variables.
func withVariables(first, second int) map[string]any {
	environment := func(count int) (env []any) {
		for i := range count {
			env = append(env, map[string]any{"name": fmt.Sprintf("STAKATER_A%d_SECRET", i), "value": "b"})
		}
		return env
	}
	return map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "first", "env": environment(first)}, map[string]any{"name": "second", "env": environment(second)},
	}}}
}

// A request has space for a hundred thousand variables, which would be compared with each other.
func TestTemplateWithTooManyVariablesIsLeftAlone(t *testing.T) {
	t.Parallel()
	most := withVariables(600, 400)
	fields := strategy.Read(most)
	assert.Len(t, fields.Variables, 1000)
	assert.Equal(t, fields, fields.On(most))

	more := withVariables(600, 401)
	assert.Empty(t, strategy.Read(more).Variables)
	assert.Empty(t, fields.On(more).Variables)
	assert.Empty(t, strategy.Fields{}.Operations(more, ""), "nor are they removed")
	assert.Equal(t, more, strategy.Without(more))
	assert.Empty(t, strategy.Fields{}.WithVariable(more, "first", secret("app"), "value").Variables, "nor is one added at each reload")
}
