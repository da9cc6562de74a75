package apiserver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A client has no other sign of a list that ends early than that it cannot be decoded.
func TestShortListEndsBehindAnItem(t *testing.T) {
	t.Parallel()
	const protobuf = "application/vnd.kubernetes.protobuf"
	short := 0
	s := server(t, func(o *apiserver.Options) {
		o.Gate = func(context.Context, *world.Call) apiserver.Fate { return apiserver.Fate{Short: short} }
	})
	for _, name := range []string{"a", "b", "c"} {
		set(t, s, name, "of-"+name)
	}
	for _, accept := range []string{
		"application/json", protobuf,
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	} {
		short = 0
		whole := send(t, s, call{method: http.MethodGet, path: configMaps, accept: accept})
		none := send(t, s, call{method: http.MethodGet, path: configMaps + "?labelSelector=none", accept: accept})
		decode := func(text string) error {
			_, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
			if strings.Contains(accept, "Partial") {
				_, _, err = metainternalversionscheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
			}
			return err
		}
		require.NoError(t, decode(whole.Body), accept)
		for missing, left := range map[int]int{1: 2, 2: 1, 3: 0, 4: 0} {
			short = missing
			a := send(t, s, call{method: http.MethodGet, path: configMaps, accept: accept})
			assert.Equal(t, 200, a.Code)
			assert.Equal(t, whole.Body[:len(a.Body)], a.Body, "%s: %d", accept, missing)
			for n, name := range []string{"of-a", "of-b", "of-c"} {
				assert.Equal(t, n < left, strings.Contains(a.Body, name), "%s: %s without the last %d", accept, name, missing)
			}
			require.Error(t, decode(a.Body), "%s: %d", accept, missing)
		}
		short = 1
		empty := send(t, s, call{method: http.MethodGet, path: configMaps + "?labelSelector=none", accept: accept})
		assert.Equal(t, none.Body[:len(empty.Body)], empty.Body)
		require.Error(t, decode(empty.Body), accept)
	}
}

func TestShortListLooksWholeOrStaysOpen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fate  apiserver.Fate
		stops bool
	}{
		"ends":  {apiserver.Fate{Short: 1}, false},
		"stops": {apiserver.Fate{Short: 1, Hang: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replies []world.Reply
			s := server(t, func(o *apiserver.Options) {
				o.Gate, o.OnReply = gate(tc.fate), func(r world.Reply) { replies = append(replies, r) }
			})
			set(t, s, "a", "of-a")
			set(t, s, "b", "of-b")
			h := httptest.NewServer(s)
			defer h.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+configMaps, http.NoBody)
			require.NoError(t, err)
			a, err := h.Client().Do(r)
			require.NoError(t, err)
			defer func() { _ = a.Body.Close() }()
			if !tc.stops {
				body, err := io.ReadAll(a.Body)
				require.NoError(t, err)
				assert.Len(t, body, int(a.ContentLength))
			} else {
				body := make([]byte, 100)
				_, err := io.ReadFull(a.Body, body)
				require.NoError(t, err)
				s.Stop()
				rest, err := io.ReadAll(a.Body)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.Contains(t, string(body)+string(rest), "of-a")
				assert.NotContains(t, string(rest), "of-b")
			}
			require.Len(t, replies, 1)
			assert.True(t, replies[0].Lost, "the rest of the answer was lost")
		})
	}
}

func TestShortStreamingListHasNoBookmark(t *testing.T) {
	t.Parallel()
	const streaming = "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	for name, tc := range map[string]struct {
		fate  apiserver.Fate
		query string
		want  []string
	}{
		"ends":      {apiserver.Fate{Short: 1}, streaming, []string{"ADDED a", "end"}},
		"has none":  {apiserver.Fate{Short: 9}, streaming, []string{"end"}},
		"stops":     {apiserver.Fate{Short: 1, Hang: true}, streaming, []string{"ADDED a"}},
		"no stream": {apiserver.Fate{Short: 1}, "&resourceVersion=4", []string{"ADDED c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *apiserver.Server) {
				t.Helper()
				w := watch(t, s, configMaps+"?watch=true"+tc.query)
				set(t, s, "c", "3")
				assert.Equal(t, tc.want, w.next())
			}, func(o *apiserver.Options) { o.Gate = gate(tc.fate) })
		})
	}
}
