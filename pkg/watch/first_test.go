package watch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// lists are the requests of lists that are not streamed.
func lists(s *apiServer) (all []request) {
	for _, r := range s.Requests() {
		if r.Get("watch") == "" {
			all = append(all, r)
		}
	}
	return all
}

// A server that is behind the others would show an older state than the one
// that was seen before: by another watch of this process, or before its start.
func TestListIsConsistent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{})
		pass(time.Minute)
		require.Equal(t, []string{"a"}, names(bulk.Store().List()))
		s.Compact()
		s.Drop(failure(410, "Expired"))
		pass(time.Minute)
		require.Len(t, lists(s), 2)
		for _, request := range lists(s) {
			assert.Empty(t, request.Get("resourceVersion"), "any version would do")
		}
	})
}

// Many large objects at a time would fill the memory before they are prepared.
func TestFewObjectsAreListedAtATime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t)
		want := make([]string, 0, 35)
		for n := range 35 {
			want = append(want, fmt.Sprintf("o%02d", n))
			s.Create(object(want[n]))
		}
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{FieldSelector: "metadata.name!=o07"})
		want = slices.Delete(want, 7, 8)
		pass(time.Minute)
		require.Equal(t, want, names(bulk.Store().List()))
		s.Compact()
		s.Drop(failure(410, "Expired"))
		pass(time.Minute)
		require.Equal(t, want, names(bulk.Store().List()))
		s.Update(object("o34"))
		pass(time.Second)
		assert.Len(t, lists(s), 8)
		for _, request := range lists(s) {
			assert.Equal(t, "10", request.Get("limit"))
		}
	})
}

// sized is a transport that refuses an answer to a list of several objects if it is large.
type sized struct{ http.RoundTripper }

var errLarge = errors.New("large")

func isLarge(err error) bool { return errors.Is(err, errLarge) }

func (t sized) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if limit := r.URL.Query().Get("limit"); err != nil || limit == "" || limit == "1" {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if len(body) > 10_000 {
		return nil, errLarge
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

func TestObjectsOfAPageThatIsTooLargeAreListedInSmallerOnes(t *testing.T) {
	t.Parallel()
	numbered := make([]int, 25)
	for n := range numbered {
		numbered[n] = n
	}
	for name, tc := range map[string]struct {
		large    []int
		size     int
		tooLarge func(error) bool
		limits   string
		err      error
	}{
		"none is large": {tooLarge: isLarge, limits: "10 10 10"},
		"the second":    {large: []int{1}, size: 10_000, tooLarge: isLarge, limits: "10 2 1 1 1 1 1 1 1 1 1 1 10 10"},
		"the last":      {large: []int{24}, size: 10_000, tooLarge: isLarge, limits: "10 10 10 2 2 2 1"},
		"in two pages":  {large: []int{9, 10}, size: 10_000, tooLarge: isLarge, limits: "10 2 2 2 2 2 1 1 10 2 1 1 1 1 1 1 1 1 1 1 10"},
		"all together":  {large: numbered, size: 1_500, tooLarge: isLarge, limits: "10 2 2 2 2 2 10 2 2 2 2 2 10"},
		"each of many":  {large: numbered[:12], size: 10_000, tooLarge: isLarge, limits: "10 2 1 1 1 1 1 1 1 1 1 1 10 2 1 1 1 1 1 1 1 1 1 1 10"},
		"another error": {large: []int{1}, size: 10_000, tooLarge: func(error) bool { return false }, limits: "10", err: errLarge},
		"no TooLarge":   {large: []int{1}, size: 10_000, limits: "10", err: errLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t)
				for _, n := range numbered {
					o := object(fmt.Sprintf("o%02d", n))
					if slices.Contains(tc.large, n) {
						o.SetAnnotations(map[string]string{"large": strings.Repeat("x", tc.size)})
					}
					s.Create(o)
				}
				s.Fault(faults{noStreamList: true})
				config := watch.Config{GVR: ingresses, IndexBy: byName, TooLarge: tc.tooLarge}
				bulk, err := watch.NewBulk(config, s.clientWith(t, func(next http.RoundTripper) http.RoundTripper { return sized{next} }))
				require.NoError(t, err)
				start(t, bulk)
				pass(time.Millisecond)
				var limits []string
				for _, request := range lists(s) {
					limits = append(limits, request.Get("limit"))
				}
				assert.Equal(t, tc.limits, strings.Join(limits, " "))
				_, err = bulk.LastWatchError()
				require.ErrorIs(t, err, tc.err)
				assert.Equal(t, tc.err == nil, bulk.Store().Len() == 25)
			})
		})
	}
}
