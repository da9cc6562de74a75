package configstate_test

import (
	"crypto/sha1"
	"fmt"
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
				states, err := f.ReadLive(t.Context(), "a", []reference.Ref{sec("db"), cm("app")})
				require.NoError(t, err)
				assert.Equal(t, c.want, states[cm("app")].SHA1, from)
				assert.Empty(t, states[sec("db")].SHA1, from)
			}
		})
	}
}

// The content of a class is never read: what Reloader computes of it comes from the watch, or from a list.
func TestSHA1OfSecretProviderClass(t *testing.T) {
	t.Parallel()
	const text = "SecretProviderClassName=vault;secret/password=7"
	reloaders := fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	for name, c := range map[string]struct {
		of   func(reference.Kind) bool
		want string
	}{
		"needed":     {func(reference.Kind) bool { return true }, reloaders},
		"not needed": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.podStatuses.put("shop", "web-0", "7")
			f := newFixture(t, s, func(o *configstate.Options) { withClasses(o); o.SHA1 = c.of }).start(t)
			f.next(t)
			assert.Equal(t, c.want, f.observe(t, "shop").SHA1, "for the loop")
			live, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
			require.NoError(t, err)
			assert.Equal(t, c.want, live[vault()].SHA1, "for the webhook")
			assert.Empty(t, f.observe(t, "pay").SHA1, "no pod there mounts it")
		})
	}
}
