package outbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
)

// The creator of an Event is read with the permission to list.
func TestReporter(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string][]eventsv1.Event{"the Event exists": {{ReportingInstance: "other"}}, "the Event has gone": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "GET /apis/events.k8s.io/v1/namespaces/shop/events?fieldSelector=metadata.name%3Da&limit=1", r.Method+" "+r.URL.String())
				w.Header().Set("Content-Type", "application/json")
				assert.NoError(t, json.NewEncoder(w).Encode(eventsv1.EventList{Items: stored}))
			}))
			t.Cleanup(server.Close)
			client, err := outbox.NewClient(&rest.Config{Host: server.URL}, server.Client())
			require.NoError(t, err)
			reporter, err := client.Reporter(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}})
			if len(stored) == 0 {
				assert.True(t, apierrors.IsConflict(err), "it is tried again: then it is created")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "other", reporter)
		})
	}
}

// An Event that exists is counted like client-go's recorder does it, with the permissions to list and to patch.
func TestCount(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for name, tc := range map[string]struct {
		stored []eventsv1.Event
		want   string
		done   bool
		// expires says that the Event is deleted before it is counted.
		expires bool
	}{
		"the second":         {stored: []eventsv1.Event{{}}, want: `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`},
		"the fifth":          {stored: []eventsv1.Event{{Series: &eventsv1.EventSeries{Count: 4}}}, want: `{"series":{"count":5,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`},
		"the Event has gone": {},
		"the Event goes before it is counted": {
			stored: []eventsv1.Event{{}}, want: `{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000006Z"}}`, expires: true,
		},
		"an attempt without an answer has created it": {stored: []eventsv1.Event{{EventTime: metav1.NewMicroTime(at)}}, done: true},
		"an attempt without an answer has counted it": {
			stored: []eventsv1.Event{{Series: &eventsv1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(at)}}}, done: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var (
				mu               sync.Mutex
				requests, bodies []string
			)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				requests = append(requests, r.Method+" "+r.URL.String())
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodPatch {
					bodies = append(bodies, string(body))
					if tc.expires {
						w.WriteHeader(http.StatusNotFound)
						status := apierrors.NewNotFound(eventsv1.Resource("events"), "a").Status()
						status.APIVersion, status.Kind = "v1", "Status"
						assert.NoError(t, json.NewEncoder(w).Encode(status))
						return
					}
					assert.NoError(t, json.NewEncoder(w).Encode(eventsv1.Event{}))
					return
				}
				assert.NoError(t, json.NewEncoder(w).Encode(eventsv1.EventList{Items: tc.stored}))
			}))
			t.Cleanup(server.Close)
			client, err := outbox.NewClient(&rest.Config{Host: server.URL}, server.Client())
			require.NoError(t, err)
			err = client.Count(t.Context(), &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, EventTime: metav1.NewMicroTime(at.Add(700)),
			})
			mu.Lock()
			defer mu.Unlock()
			const events = "/apis/events.k8s.io/v1/namespaces/shop/events"
			assert.Equal(t, "GET "+events+"?fieldSelector=metadata.name%3Da&limit=1", requests[0])
			if tc.want == "" {
				assert.Equal(t, !tc.done, apierrors.IsConflict(err), "after a conflict it is tried again: then it is created")
				assert.Len(t, requests, 1)
				return
			}
			if tc.expires {
				assert.True(t, apierrors.IsConflict(err), "it is no proof that the namespace is gone: %v", err)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, "PATCH "+events+"/a", requests[1])
			assert.JSONEq(t, tc.want, bodies[0])
		})
	}
}
