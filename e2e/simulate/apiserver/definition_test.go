package apiserver_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestWithdrawnResourceIsNotServed(t *testing.T) {
	t.Parallel()
	s := server(t)
	uid := post(t, s, rollouts, payBody).object().GetUID()
	for name, discovered := range map[string]bool{"not installed": false, "unknown to one API server of several": true} {
		s.Withdraw(world.Rollouts, discovered)
		for _, answered := range []answer{
			get(t, s, rollouts), get(t, s, pay), get(t, s, rollouts+"?watch=true"), merge(t, s, pay, "{}"), post(t, s, rollouts, payBody),
		} {
			assert.Equal(t, http.StatusNotFound, answered.Code, name)
			assert.Equal(t, "404 page not found\n", answered.Body, "it has no Status: %s", name)
		}
		status := map[bool]int{false: http.StatusNotFound, true: http.StatusOK}[discovered]
		for _, path := range []string{"/apis/argoproj.io", "/apis/argoproj.io/v1alpha1"} {
			assert.Equal(t, status, get(t, s, path).Code, "%s: %s", name, path)
		}
		assert.Equal(t, http.StatusOK, get(t, s, deployments).Code, "other resources are served: %s", name)

		s.Serve(world.Rollouts)
		assert.Equal(t, uid, get(t, s, pay).object().GetUID(), "the objects are left: %s", name)
		assert.Equal(t, http.StatusOK, get(t, s, "/apis/argoproj.io/v1alpha1").Code, name)
	}
	s.Withdraw(world.Deployments, false)
	assert.Equal(t, http.StatusOK, get(t, s, deployments).Code, "a built-in resource is always served")
}

func TestWatchesOfAWithdrawnResourceEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		post(t, s, rollouts, payBody)
		custom, builtin := watch(t, s, rollouts+"?watch=true"), watch(t, s, deployments+"?watch=true")
		assert.Equal(t, []string{"ADDED pay"}, custom.next())
		s.Withdraw(world.Rollouts, false)
		assert.True(t, s.Remove(worldKey("rollouts", "pay")), "the object was stored")
		assert.Equal(t, []string{"end"}, custom.next(), "what is deleted then is not delivered")
		post(t, s, deployments, cartBody)
		assert.Equal(t, []string{"ADDED cart"}, builtin.next())
		s.Stop()
	})
}
