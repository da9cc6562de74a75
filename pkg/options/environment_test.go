package options_test

import (
	"strings"
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

// The user has set no flag.
func TestProblemOfAVariableNamesIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		env    map[string]string
		args   []string
		want   []string
	}{
		"POD_NAMESPACE":            {"the downward API fills it in, or a user", map[string]string{"POD_NAMESPACE": "A"}, nil, []string{`environment variable POD_NAMESPACE: "A" is not a valid namespace name`}},
		"RELOADER_NAMESPACE":       {"of Reloader's chart", map[string]string{"RELOADER_NAMESPACE": "A"}, nil, []string{`environment variable RELOADER_NAMESPACE: "A" is not a valid namespace name`}},
		"KUBERNETES_NAMESPACE":     {"it is the own namespace, too, and one problem", map[string]string{"KUBERNETES_NAMESPACE": "A"}, nil, []string{`environment variable KUBERNETES_NAMESPACE: "A" is not a valid namespace name`}},
		"RELOADER_DEPLOYMENT_NAME": {"of Reloader's chart", map[string]string{"POD_NAMESPACE": "a", "RELOADER_DEPLOYMENT_NAME": "A"}, nil, []string{"environment variable RELOADER_DEPLOYMENT_NAME: "}},
		"POD_NAME":                 {"a user has set it", map[string]string{"POD_NAMESPACE": "a", "POD_NAME": "A-7d9f8b6c5d-x2x4z"}, nil, []string{"environment variable POD_NAME: "}},
		"flags": {
			"they go before the variables",
			map[string]string{"POD_NAMESPACE": "A", "RELOADER_DEPLOYMENT_NAME": "A"},
			[]string{"--namespace=B", "--installation-name=B"},
			[]string{"--namespace: ", "--installation-name: "},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := completeIn(t, tt.env, tt.args...)
			require.Error(t, err, tt.reason)
			problems := strings.Split(err.Error(), "\n")
			require.Len(t, problems, len(tt.want), "%s: %s", tt.reason, err)
			for i, want := range tt.want {
				assert.Contains(t, problems[i], want, tt.reason)
			}
		})
	}
}

// plan goes on with what is wrong.
func TestEmptyNamespacesLeaveTheVariable(t *testing.T) {
	t.Parallel()
	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--namespaces=,"}))
	assert.Equal(t, []string{"tools"}, flags.NamedNamespaces(with(map[string]string{"KUBERNETES_NAMESPACE": "tools"})))
}
