package configstate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestSHA1IsOfTheKindsThatNeedIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   func(reference.Kind) bool
		want string
	}{
		"of none": {nil, ""},
		"of one":  {func(kind reference.Kind) bool { return kind == reference.ConfigMap }, digest.OfConfigMap(configMap("a", "app", "x")).SHA1()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			f := newFixture(t, s, func(o *configstate.Options) { o.SHA1 = c.of })
			s.put(secret("a", "db", "x"))
			s.put(configMap("a", "app", "x"))
			for _, from := range []string{"the server", "the digest cache"} {
				states, err := f.Live(t.Context(), "a", []reference.Ref{sec("db"), cm("app")})
				require.NoError(t, err)
				assert.Equal(t, c.want, states[cm("app")].SHA1, from)
				assert.Empty(t, states[sec("db")].SHA1, from)
			}
		})
	}
}
