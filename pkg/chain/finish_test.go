package chain

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// Writes of several configurations can end together. Each is judged by itself.
func TestEndOfAWriteOfAnEarlierConfigurationIsIgnored(t *testing.T) {
	t.Parallel()
	_, earlier, _ := proxiesAlone(t)
	_, now, _ := proxiesAlone(t)
	u := &publisher{graphState: &graphState{configuration: configuration{schema: now}}, leads: t.Context(), now: time.Now, log: logr.Discard()}
	of := func(configuration *referent.Schema, name string) written {
		resource := configuration.Resources()[0]
		return written{publication: publication{key: resource.Key("ns", name), resource: resource}}
	}
	first, second := of(earlier, "first"), of(now, "second")
	for _, w := range []written{first, second} {
		u.unpublished.failed(w.key, "", errNotStored, time.Now())
	}
	u.finish([]written{first, second})
	assert.True(t, u.unpublished.has(first.key), "the resource is another one now")
	assert.False(t, u.unpublished.has(second.key), "it is written")

	u.leads = nil
	u.finish([]written{of(now, "first")})
	assert.True(t, u.unpublished.has(first.key), "the leadership has ended")
}
