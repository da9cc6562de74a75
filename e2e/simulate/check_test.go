package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestReadHistoryRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	const replicas = `"replicas": 1`
	tests := map[string]struct{ setup, steps, want string }{
		"unknown flag":            {setup: `"flags": ["--nonsense"]`, want: "setup.flags: --nonsense: unknown flag"},
		"value of a flag":         {setup: `"flags": ["--settle=soon"]`, want: `setup.flags: --settle: "soon": want a duration`},
		"flags that disagree":     {setup: `"flags": ["--settle=9s", "--settle-max=3s"]`, want: "setup.flags: "},
		"help":                    {setup: `"flags": ["--help"]`, want: "setup.flags: --help starts nothing"},
		"crash before all writes": {setup: `"crashAtWrite": -5`, want: "setup.crashAtWrite: -5 is negative"},
		"unknown code":            {setup: replicas, steps: `{"do": "api-errors", "with": {"code": "7"}}`, want: `step 1 (api-errors): with.code: "7" is none of 401,`},
		"more than all":           {setup: replicas, steps: `{"do": "webhook-flaky", "with": {"percent": "500"}}`, want: `with.percent: "500" is no number from 1 to 100`},
		"none of all":             {setup: replicas, steps: `{"do": "lose-answers", "with": {"percent": "0"}}`, want: `with.percent: "0" is no number from 1 to 100`},
		"unknown resource":        {setup: replicas, steps: `{"do": "api-errors", "with": {"resource": "confgmaps"}}`, want: `with.resource: "confgmaps" is none of configmaps,`},
		"watch of no resource":    {setup: replicas, steps: `{"do": "hold-watches", "on": "confgmaps"}`, want: `on: "confgmaps" is none of configmaps,`},
		"unknown mode":            {setup: replicas, steps: `{"do": "foreign-webhook", "on": "namespaces/shop", "with": {"mode": "dance"}}`, want: `with.mode: "dance" is none of reject, hang`},
		"unknown namespace":       {setup: replicas, steps: `{"do": "foreign-webhook", "on": "shop"}`, want: `on: "shop" is none of namespaces/shop,`},
		"unknown verb":            {setup: replicas, steps: `{"do": "withdraw-permissions", "on": "secrets", "with": {"verbs": "get, list"}}`, want: `with.verbs: " list" is none of get, list,`},
		"no verbs":                {setup: replicas, steps: `{"do": "withdraw-permissions", "on": "secrets"}`, want: "with.verbs: missing"},
		"kill of a workload":      {setup: replicas, steps: `{"do": "kill", "on": "deployments/x"}`, want: `step 1 (kill): on: "deployments/x" is no replica, from replica-0 to replica-8`},
		"kill of nothing":         {setup: replicas, steps: `{"do": "kill"}`, want: `on: "" is no replica`},
		"more than can exist":     {setup: replicas, steps: `{"do": "kill", "on": "replica-99"}`, want: `on: "replica-99" is no replica`},
		"more than there are":     {setup: replicas, steps: `{"do": "kill", "on": "replica-7"}`, want: "step 1 (kill): on: replica-7 never exists: setup.replicas is 1; raise it"},
		"target of the whole":     {setup: replicas, steps: `{"do": "webhook-away", "on": "replica-0"}`, want: "the whole installation; remove it"},
		"slow by nothing":         {setup: replicas, steps: `{"do": "api-slow"}`, want: "with.by: missing"},
		"no duration":             {setup: replicas, steps: `{"do": "api-slow", "with": {"by": "-3s"}}`, want: `with.by: "-3s" is no duration`},
		"fault of weeks":          {setup: replicas, steps: `{"do": "api-away", "with": {"for": "1000h"}}`, want: "with.for: 1000h is longer than 24h"},
		"clock that is no time":   {setup: replicas, steps: `{"do": "clock", "on": "replica-0", "with": {"offset": "late"}}`, want: `with.offset: "late" is no duration`},
		"unknown flag of one":     {setup: replicas, steps: `{"do": "restart-with", "on": "replica-0", "with": {"flags": "--nonsense"}}`, want: "with.flags: --nonsense: unknown flag"},
		"parameter of another":    {setup: replicas, steps: `{"do": "kill", "on": "replica-0", "with": {"percent": "50"}}`, want: "with.percent: unknown parameter of kill, which takes for"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "history.json")
			content := `{"form": 1, "seed": 1, "setup": {` + test.setup + `}, "steps": [` + test.steps + `]}`
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			_, err := ReadHistory(file)
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, file)
			assert.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "one line")
		})
	}
}

func TestReadHistoryAcceptsWhatMakesSense(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"replica that was shrunk away": `{"do": "kill", "on": "replica-2"}`,
		"all replicas":                 `{"do": "api-errors", "with": {"for": "5s", "resource": "", "code": "504", "percent": "100"}}`,
		"clock that is behind":         `{"do": "clock", "on": "replica-0", "with": {"offset": "-1m"}}`,
		"no flags":                     `{"do": "reconfigure", "with": {"flags": ""}}`,
		"resource of a graph":          `{"do": "withdraw-permissions", "on": "filters", "with": {"verbs": "get,list,watch"}}`,
	}
	for name, step := range tests {
		file := filepath.Join(t.TempDir(), "history.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"form": 1, "seed": 1, "setup": {"replicas": 1}, "steps": [`+step+`]}`), 0o600))
		_, err := ReadHistory(file)
		assert.NoError(t, err, name)
	}
}

func TestEachDrawnFaultHasItsForm(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	for _, kind := range faultKinds() {
		assert.Contains(t, forms(), kind.name)
	}
	assert.Len(t, forms(), len(faultKinds()), "a form without a fault")
	for seed := range uint64(300) {
		h := Draw(seed+1, DrawOptions{Steps: 60, Faults: true})
		require.NoError(t, Catalogue().Check(h), "seed %d", seed+1)
		require.NoError(t, checkInstallation(h), "seed %d", seed+1)
	}
}
