package watchhealth_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// What is between here and the API server may answer lists, and every watch with 410.
func TestThirdWatchInARowWhoseVersionHasExpiredFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		expire := func() (began time.Time) {
			<-time.After(time.Second)
			began = time.Now()
			require.NoError(t, client.do(list, status(200)))
			require.NoError(t, client.do(versioned, status(410)))
			return began
		}
		for range 2 {
			expire()
			expire()
			assert.True(t, client.status().Healthy(), "one or two may come too late")
			require.NoError(t, client.do(list, status(200)))
			require.NoError(t, client.do(versioned, status(200)))
		}
		expire()
		expire()
		began := expire()
		expire()
		assert.Equal(t, watchhealth.Failed, client.status().Reason)
		assert.Contains(t, client.status().Detail, "410")
		assert.Equal(t, began, client.status().Since)
		require.NoError(t, client.do(list, status(200)))
		assert.False(t, client.status().Healthy(), "a list is no watch")
		require.NoError(t, client.do(versioned, content(200, late(time.Second))))
		assert.True(t, client.status().Healthy(), "a watch goes on from a version that is kept")
	})
}

// An API server answers a watch whose version has expired with an event: after each list, where its watch cache is too short.
func TestThirdWatchInARowThatBeginsWithAnErrorFails(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]struct{ failed, added []string }{
		"in JSON": {
			failed: []string{`{"type":"ERROR","object":{"kind":"Status","code":410}}`},
			added:  []string{`{"type":"ADDED","object":{"data":{"text":"ERROR"}}}`},
		},
		"in protobuf, whose length is read by itself": {
			failed: []string{"\x00\x00\x00\x20", "\x0a\x05ERROR\x12\x17\x0a\x15k8s\x00"},
			added:  []string{"\x00\x00\x00\x20", "\x0a\x05ADDED\x12\x17\x0a\x15k8s\x00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				watched := func(sent []string) {
					<-time.After(time.Second)
					require.NoError(t, client.do(list, status(200)))
					parts := make([]io.Reader, 0, len(sent))
					for _, part := range sent {
						parts = append(parts, strings.NewReader(part))
					}
					require.NoError(t, client.do(versioned, content(200, io.MultiReader(parts...))))
				}
				watched(events.failed)
				watched(events.failed)
				assert.True(t, client.status().Healthy(), "one or two may come too late")
				watched(events.added)
				watched(events.failed)
				watched(events.failed)
				assert.True(t, client.status().Healthy(), "one has worked in between")
				watched(events.failed)
				assert.False(t, client.status().Healthy(), "three watches in a row have ended with an error")
				assert.Contains(t, client.status().Detail, "end at once")
			})
		})
	}
}
