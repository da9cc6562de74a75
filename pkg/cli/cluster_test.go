package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestNamesOfFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]types.NamespacedName{"": {}, "a/b": {Namespace: "a", Name: "b"}} {
		got, err := parseName("reloader", text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"a", "/b", "a/", "a/b/c", "/", "A/b", "a/B", "a.b/c"} {
		_, err := parseName("reloader", text)
		require.EqualError(t, err, fmt.Sprintf("--reloader: %q: want NAMESPACE/NAME", text))
	}
}

// silent is an API server that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestCommandsEndWhereTheAPIServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"check": {"check", "-n", "shop", "--timeout=0s"},
		"clean": {"clean", "deployment/cart", "-n", "shop"},
		"all":   {"clean", "--all", "-n", "shop"},
		"why":   {"why", "deployment/cart", "-n", "shop"},
		"plan":  {"plan", "--from-reloader"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends := func(ctx context.Context, within time.Duration) {
				t.Helper()
				p := Process{Args: args, Stdout: io.Discard, Stderr: io.Discard, Getenv: unset, Cluster: &rest.Config{Host: "https://api", Transport: silent{}}}
				began := time.Now()
				assert.Equal(t, exitFailed, Run(ctx, p))
				assert.LessOrEqual(t, time.Since(began), within)
			}
			synctest.Test(t, func(t *testing.T) {
				interrupted, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				ends(interrupted, time.Second)
				if name == "check" {
					ends(t.Context(), leastAttempt)
				} else {
					ends(t.Context(), 2*discoveryLimit)
				}
			})
		})
	}
}
