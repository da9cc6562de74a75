package configstate_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// silent is a connection on which no request has an answer.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A caller without a deadline would wait for ever, and a read that others wait for, too, would keep its place in its namespace.
func TestReadThatHangsIsGivenUpAfterThirtySeconds(t *testing.T) {
	t.Parallel()
	many := names(40)
	class := []reference.Ref{{Kind: reference.SecretProviderClass, Name: "vault"}}
	one := []reference.Ref{cm("app")}
	for name, read := range map[string]func(context.Context, *configstate.Store) error{
		"ReadLive": func(ctx context.Context, s *configstate.Store) error {
			_, err := s.ReadLive(ctx, "shop", one)
			return err
		},
		"ReadLive, by a list": func(ctx context.Context, s *configstate.Store) error {
			_, err := s.ReadLive(ctx, "shop", many)
			return err
		},
		"ReadLive, of a class": func(ctx context.Context, s *configstate.Store) error {
			_, err := s.ReadLive(ctx, "shop", class)
			return err
		},
		"Admission": func(ctx context.Context, s *configstate.Store) error {
			_, err := s.Admission().ReadLive(ctx, "shop", one)
			return err
		},
		"ReadIfChanged": func(ctx context.Context, s *configstate.Store) error {
			_, err := s.ReadIfChanged(ctx, "shop", one)
			return err
		},
		"At": func(ctx context.Context, s *configstate.Store) error {
			_, err := s.At(ctx, "shop", one[0], "7")
			return err
		},
		"Learn":               func(ctx context.Context, s *configstate.Store) error { return s.Learn(ctx, "shop", one) },
		"Recheck":             func(ctx context.Context, s *configstate.Store) error { return s.Recheck(ctx, "shop", one[0]) },
		"Recheck, of a class": func(ctx context.Context, s *configstate.Store) error { return s.Recheck(ctx, "shop", class[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				keys := digesttest.Ring(t, "1")
				s, err := configstate.New(configstate.Options{
					Config: &rest.Config{Host: "http://api.example.com"}, HTTPClient: &http.Client{Transport: silent{}},
					Ring: func() digest.Ring { return keys }, SecretProviderClasses: true, Log: logr.Discard(),
				})
				require.NoError(t, err)
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				began := time.Now()
				require.Error(t, read(ctx, s))
				took := time.Since(began)
				assert.GreaterOrEqual(t, took, 30*time.Second, "a slow answer is waited for")
				assert.LessOrEqual(t, took, 2*30*time.Second, "one read is up to two requests")
				assert.Zero(t, s.Waiting())
			})
		})
	}
}
