package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOwesUntilTheReloadAndItsEvent(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{})
	s.begin()
	assert.False(t, s.oracle.Owes(s.now), "nothing has changed")
	s.set(configMap("app"), "2")
	assert.True(t, s.oracle.Owes(s.now), "a reload is due")
	s.wait(time.Second)
	s.reloadSilently(cart, "b", "configmap/app modified")
	s.rollout(cart)
	assert.True(t, s.oracle.Owes(s.now), "the Event of the reload is missing")
	s.reportReload(cart)
	assert.False(t, s.oracle.Owes(s.now), "the reload is made and reported")
}
