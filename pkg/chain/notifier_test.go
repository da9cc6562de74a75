package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestHandlersAreCalledAgainForWhatIsHeldStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy := func(name string) referent.Key {
			return referent.Key{Group: "kroxylicious.io", Resource: "kafkaproxies", Namespace: "ns", Name: name}
		}
		called := make(chan string, 10)
		n := &notifier{isHeld: func(key referent.Key) bool { return key.Name == "held" }, now: time.Now}
		n.handlers = append(n.handlers, func(e configstate.Event) { called <- e.Namespace + " " + e.Ref.String() })
		n.report([]referent.Change{
			{Key: proxy("valid")},
			{Key: proxy("held"), Held: true},
			{Key: proxy("valid-later"), Held: true},
			{Key: referent.ConfigKey("ns", reference.Ref{Kind: reference.Secret, Name: "tls"})},
		})
		for _, name := range []string{"valid", "held", "valid-later"} {
			assert.Equal(t, "ns kafkaproxies.kroxylicious.io/"+name, <-called)
		}
		assert.Empty(t, called, "a config object has its own events")
		<-time.After(digest.ReportHoldAfter + time.Hour)
		synctest.Wait()
		assert.Equal(t, "ns kafkaproxies.kroxylicious.io/held", <-called)
		assert.Empty(t, called)
	})
}
