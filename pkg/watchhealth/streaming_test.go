package watchhealth_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// opened sends a request for a streaming list that is answered at once, and reads what comes out of the channel.
func (c client) opened(ctx context.Context, chunks <-chan string) {
	c.t.Helper()
	response, err := c.send(ctx, streaming, stream(chunks)) //nolint:bodyclose // it is, at its end
	require.NoError(c.t, err)
	go func() {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}()
}

// A proxy may accept each streaming list and hold back what follows. The client lists instead, which fails too, and starts over.
func TestStreamingListThatIsOnlyAcceptedDoesNotHealAWatch(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"nothing": "", "a part of the list": "object"} {
		for failing, answer := range map[string]server{"forbidden": status(403), "cut": content(200, broken{}), "unanswered": hang} {
			t.Run(name+", then "+failing, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					client := newClient(t)
					_ = client.do(list, answer)
					since := client.status().Since
					for range 5 {
						ctx, giveUp := context.WithTimeout(t.Context(), 30*time.Second)
						chunks := make(chan string)
						client.opened(ctx, chunks)
						if sent != "" {
							chunks <- sent
						}
						<-ctx.Done()
						giveUp()
						synctest.Wait()
						assert.True(t, client.monitor.Failing("secrets", "shop"), "the list was never complete")
						_ = client.do(list, answer)
					}
					assert.Equal(t, since, client.status().Since)
				})
			})
		}
	}
}

func TestStreamingListHealsAWatchAtItsEnd(t *testing.T) {
	t.Parallel()
	const mark = metav1.InitialEventsAnnotationKey
	for name, before := range map[string]server{"forbidden": status(403), "silent": stream(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for cut := range len(mark) { // the bytes may come in any parts
					client := newClient(t)
					require.NoError(t, client.do(watch, before))
					failing := client.status()
					ctx, end := context.WithCancel(t.Context())
					chunks := make(chan string)
					client.opened(ctx, chunks)
					chunks <- "objects k8s.io/initial-"
					chunks <- mark[:cut]
					synctest.Wait()
					assert.Equal(t, failing, client.status(), "the list is not complete")
					chunks <- mark[cut:] + `":"true"`
					synctest.Wait()
					assert.Equal(t, watchhealth.Status{Watch: secrets}, client.status())
					end()
				}
			})
		})
	}
}
