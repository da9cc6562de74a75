package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/plan"
)

func TestTextControlsNoTerminal(t *testing.T) {
	t.Parallel()
	const control = "a\x1b[2J"
	report := plan.Report{
		Settings: []plan.Setting{{Name: "--alert-sink", Message: control}},
		Groups: []plan.Group{{Workloads: []plan.Difference{{
			Kind: "Deployment", Name: "cart", Effects: []plan.Effect{{Object: control}}, Problems: []string{control},
		}}}},
	}
	var text strings.Builder
	require.NoError(t, report.Write(&text))
	assert.NotContains(t, text.String(), "\x1b")
	assert.Equal(t, 3, strings.Count(text.String(), "a\ufffd[2J"))
}
