package options_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		env     map[string]string
		want    int64
		problem string
	}{
		"without a limit": {reason: "outside of a container"},
		"90 %":            {reason: "a limit equal to the container's would not leave room for the program", env: map[string]string{"POD_MEMORY_LIMIT": "536870912"}, want: 483183820},
		"large":           {reason: "no overflow", env: map[string]string{"POD_MEMORY_LIMIT": "9223372036854775807"}, want: 8301034833169298220},
		"of the user":     {reason: "the Go runtime has read it", env: map[string]string{"POD_MEMORY_LIMIT": "536870912", "GOMEMLIMIT": "400MiB"}},
		"no number":       {reason: "the downward API writes bytes", env: map[string]string{"POD_MEMORY_LIMIT": "512Mi"}, problem: `environment variable POD_MEMORY_LIMIT: "512Mi": want a number of bytes`},
		"nothing left":    {reason: "no container has it", env: map[string]string{"POD_MEMORY_LIMIT": "0"}, problem: "want a number of bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environment := in("tools")
			namespace := environment.Getenv
			environment.Getenv = func(key string) string { return namespace(key) + tt.env[key] }
			o, err := options.NewFlags().Complete(environment)
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem, tt.reason)
				return
			}
			require.NoError(t, err)
			assert.InDelta(t, tt.want, o.MemoryLimit, 10, tt.reason)
		})
	}
}
