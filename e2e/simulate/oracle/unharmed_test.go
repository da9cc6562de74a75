package oracle

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestUnharmedAnswers(t *testing.T) {
	t.Parallel()
	rejected := func(body string, status int, webhook string) func(s *harness) {
		return func(s *harness) {
			s.begin()
			call := s.call(user, "patch", cart, []byte(body))
			if body != "" && body[0] == '[' {
				call.ContentType = "application/json-patch+json"
			}
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: status, Webhook: webhook})
		}
	}
	put := func(change func(world.Object)) func(s *harness) {
		return func(s *harness) {
			s.t.Helper()
			s.begin()
			body, err := json.Marshal(edited(s.objects[cart], func(o world.Object) {
				setAnnotation(o, prefix+"config-hash", "00")
				change(o)
			}))
			require.NoError(t, err)
			call := s.call(user, "update", cart, body)
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 409, Webhook: "mutate.pod-reloader.cs.sap.com"})
		}
	}
	away := func(kind string, ago time.Duration) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.fault(kind, "", 5*time.Second)
			s.wait(ago)
			call := s.call(user, "patch", cart, []byte(`{"spec":{}}`))
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{
				Call: call, At: s.now, Status: 500, Webhook: "mutate.pod-reloader.cs.sap.com",
				Failure: &metav1.Status{Message: "failed calling webhook"},
			})
		}
	}
	right := func(between func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.begin()
			between(s)
			digest := s.oracle.revisionDigest(s.oracle.workloads[idOf(cart)])
			call := s.call(user, "patch", cart, fmt.Appendf(nil, `{"metadata":{"annotations":{"%sconfig-hash":"%s"}}}`, prefix, digest))
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 409, Webhook: "mutate.pod-reloader.cs.sap.com"})
		}
	}
	container := func(o world.Object) world.Object {
		return world.Objects(o, "spec", "template", "spec", "containers")[0]
	}
	const ours = "mutate.pod-reloader.cs.sap.com"
	const asks = `{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"00"}}}`
	runLaw(t, "unharmed", map[string]lawCase{
		"rejected":                      {want: "unharmed/rejected", because: "it asks for nothing", happens: rejected(`{"spec":{}}`, 409, ours)},
		"rejected by another":           {because: "not ours", happens: rejected(`{"spec":{}}`, 403, "validator.example.com")},
		"verified reload":               {because: "it does not match", happens: rejected(asks, 409, ours)},
		"verified reload, unverifiable": {because: "try again", happens: rejected(asks, 503, ours)},
		"verified reload, other status": {want: "unharmed/rejected", because: "409 and 503 only", happens: rejected(asks, 500, ours)},
		"verified reload by JSON patch": {because: "it does not match", happens: rejected(`[{"op":"add","path":"/metadata/annotations/pod-reloader.cs.sap.com~1config-hash","value":"00"}]`, 409, ours)},
		"hash of the template by JSON patch": {
			want: "unharmed/rejected", because: "rollout undo asks for nothing",
			happens: rejected(`[{"op":"replace","path":"/spec/template","value":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"00"}}}}]`, 409, ours),
		},
		"old request that a rollback brings back": {
			want: "unharmed/rejected/with-template", because: "rollout undo asks for nothing",
			happens: rejected(`[{"op":"replace","path":"/spec/template","value":{}},
				{"op":"replace","path":"/metadata/annotations","value":{"pod-reloader.cs.sap.com/config-hash":"00"}}]`, 409, ours),
		},
		"verified reload by PUT": {because: "it does not match", happens: put(func(world.Object) {})},
		"old request in a PUT with another image": {
			want: "unharmed/rejected/with-template", because: "the release asks for nothing",
			happens: put(func(o world.Object) { container(o)["image"] = "example.com/other:2" }),
		},
		"old request in a PUT that adds a variable": {
			want: "unharmed/rejected/with-template", because: "the release asks for nothing",
			happens: put(func(o world.Object) { container(o)["env"] = []any{world.Object{"name": "A", "value": "1"}} }),
		},
		"old request in a PUT with another container": {
			want: "unharmed/rejected/with-template", because: "the release asks for nothing",
			happens: put(func(o world.Object) {
				world.Section(o, "spec", "template", "spec")["containers"] = []any{container(o), world.Object{"name": "more", "image": "example.com/more:1"}}
			}),
		},
		"right request":                    {want: "unharmed/rejected/right", because: "it has the digest of what is there", happens: right(func(*harness) {})},
		"right request after a change":     {because: "it may have been compared with the one before", happens: right(func(s *harness) { s.set(configMap("app"), "1") })},
		"right request under a fault":      {because: "it cannot be verified", happens: right(func(s *harness) { s.fault("api-errors", "", time.Second) })},
		"webhook not called":               {because: "it was away a moment ago", happens: away("webhook-away", 10*time.Second)},
		"webhook not called long after":    {want: "unharmed/rejected", because: "it is back", happens: away("webhook-away", 2*time.Minute)},
		"webhook not called, clocks apart": {want: "unharmed/rejected", because: "no call fails because of that", happens: away("clock", time.Second)},
		"stale request": {want: "unharmed/rejected", because: "the annotation was there before", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-hash", "00") })
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
			s.wait(time.Minute)
			call := s.call(user, "patch", cart, []byte(asks))
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 409, Webhook: ours})
		}},
	})
}

func TestUnharmedWrites(t *testing.T) {
	t.Parallel()
	stored := func(change func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			s.begin()
			sent := manifest(cart, "two")
			call := s.call(user, "update", cart, nil)
			s.oracle.Request(call)
			s.change(call, cart, sent, edited(sent, change))
		}
	}
	runLaw(t, "unharmed", map[string]lawCase{
		"managed annotations added": {because: "they are ours", happens: stored(func(o world.Object) {
			setAnnotation(o, prefix+"config-record", "v1:x")
			setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "b")
			world.Section(o, "metadata")["generation"] = 7
			o["status"] = world.Object{"replicas": 1}
		})},
		"field dropped": {want: "unharmed/stored", because: "it is the user's", happens: stored(func(o world.Object) {
			delete(world.Section(o, "spec"), "replicas")
		})},
		"template changed": {want: "unharmed/stored", because: "it is the user's", happens: stored(func(o world.Object) {
			world.Section(o, "spec", "template", "spec")["hostNetwork"] = true
		})},
		"list changed": {want: "unharmed/stored", because: "lists are the user's", happens: stored(func(o world.Object) {
			setAnnotation(o, prefix+"configmaps", "app")
		})},
		"other annotation of the template": {want: "unharmed/stored", because: "it is not ours", happens: stored(func(o world.Object) {
			setAnnotation(world.Section(o, "spec", "template"), "kubectl.kubernetes.io/restartedAt", "now")
		})},
		"another webhook": {
			options: Options{Foreign: func(o world.Object) world.Object {
				return edited(o, func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), "injected", "") })
			}},
			because: "it is known what it adds",
			happens: stored(func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), "injected", "yes") }),
		},
		"program writes more than managed annotations": {want: "unharmed/program", because: "the rest is the user's", happens: func(s *harness) {
			s.beginWithChange()
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { world.Section(o, "spec")["replicas"] = 9 }))
		}},
	})
}
