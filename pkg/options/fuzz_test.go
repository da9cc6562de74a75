package options_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// Any command line, here one argument a line, gives options or an error with a text.
func FuzzFlags(f *testing.F) {
	for _, args := range []string{
		"", "--settle=2s", "--settle\n2s", "-settle=2s", "--", "-", "--=", "--settle", "--no-such\nvalue", "--webhook\nfalse",
		"--namespaces=a,b,,\n--namespace-selector=a in (b", "--workload-kinds=g/v1/K=spec.template", "--config=configmap:a/b",
		"--tls-min-version=1.3\n--log-level=-1\n--refractory=-1s\n--help",
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, text string) {
		flags := options.NewFlags()
		args := strings.Split(text, "\n")
		if err := flags.Parse(args); err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		o, err := flags.Complete(in("tools"))
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		for _, d := range []time.Duration{o.Reload.Settle, o.Reload.SettleMax, o.Reload.Refractory} {
			assert.GreaterOrEqual(t, d, time.Duration(0), "what is let through makes sense: %q", args)
		}
		assert.GreaterOrEqual(t, o.Reload.SettleMax, o.Reload.Settle, "%q", args)
		assert.NotEmpty(t, o.Selection.Keys.ConfigHash)
	})
}
