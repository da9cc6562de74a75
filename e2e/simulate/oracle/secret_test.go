package oracle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestSecretInWhatTheWebhookReturns(t *testing.T) {
	t.Parallel()
	const value = "correct horse battery"
	answers := func(key world.Key, reply world.Reply) func(s *harness) {
		return func(s *harness) {
			s.set(secret("db"), value)
			reply.Call, reply.At = s.request(user, "update", key, []byte("{}")), s.now
			s.oracle.Reply(reply)
		}
	}
	stores := func(name string) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.set(secret("db"), value)
			s.edit(cart, func(o world.Object) { world.Annotations(o)[name] = "v1:" + value })
		}
	}
	refused := world.Reply{Status: 409, Failure: &metav1.Status{Message: "the Secret has " + value}}
	runLaw(t, "secret", map[string]lawCase{
		"warning":            {want: "secret/reply", because: "a user may read it who may read no Secret", happens: answers(cart, world.Reply{Status: 200, Warnings: []string{value}})},
		"error":              {want: "secret/reply", because: "a user may read it who may read no Secret", happens: answers(cart, refused)},
		"error of a Secret":  {because: "it is about its own content", happens: answers(secret("db"), refused)},
		"no value":           {because: "there is none", happens: answers(cart, world.Reply{Status: 200, Warnings: []string{"mind"}})},
		"managed annotation": {want: "secret/annotation", because: "it is stored where all can read it", happens: stores("pod-reloader.cs.sap.com/config-record")},
		"another annotation": {because: "it is the user's", happens: stores("example.com/note")},
	})
}
