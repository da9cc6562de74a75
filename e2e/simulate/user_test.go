package simulate

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Acts know the default prefix only.
func TestUserSpeaksThePrefixOfTheInstallation(t *testing.T) {
	t.Parallel()
	for prefix, sent := range map[string]string{
		"restarts.example/": `{"a":"restarts.example/secrets","path":"/metadata/annotations/restarts.example~1secrets"}`,
		act.Prefix:          `{"a":"pod-reloader.cs.sap.com/secrets","path":"/metadata/annotations/pod-reloader.cs.sap.com~1secrets"}`,
	} {
		var got string
		u := newUser(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			got = string(body)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"a":"` + prefix + `config-hash"}`))}, err
		})}, prefix)
		answer, err := u.Do(t.Context(), act.Request{
			Method: "PATCH", Body: []byte(`{"a":"pod-reloader.cs.sap.com/secrets","path":"/metadata/annotations/pod-reloader.cs.sap.com~1secrets"}`),
		})
		require.NoError(t, err)
		assert.Equal(t, sent, got)
		assert.JSONEq(t, `{"a":"pod-reloader.cs.sap.com/config-hash"}`, string(answer.Body))
	}
}
