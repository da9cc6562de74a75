package oracle

import (
	"encoding/base64"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestScope(t *testing.T) {
	t.Parallel()
	outside := Options{InScope: func(_ string, labels, _ map[string]string) bool { return labels["team"] == "a" }}
	plain := func(o world.Object) { world.Section(o, "metadata")["annotations"] = nil }
	exclude := excludedBy("ignored")
	runLaw(t, "scope", map[string]lawCase{
		"no annotations": {want: "scope/request", because: "no user asked for it", happens: func(s *harness) {
			s.sends("create", cart, edited(manifest(cart, "one"), plain), "")
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte("{}"))
		}},
		"no annotations, a pause ends": {because: "an export has the annotation of the pause", happens: func(s *harness) {
			s.sends("create", cart, edited(manifest(cart, "one"), plain), "")
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte(`{"metadata":{"annotations":{"`+pausedAt+`":null}},"spec":{"paused":null}}`))
		}},
		"out of scope, a pause ends": {options: outside, want: "scope/request", because: "the flags leave it out", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "")
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte(`{"metadata":{"annotations":{"`+pausedAt+`":null}}}`))
		}},
		"out of scope": {options: outside, want: "scope/request", because: "the flags leave it out", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "")
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte("{}"))
		}},
		"just left the scope": {options: outside, because: "the program may not know yet", happens: func(s *harness) {
			s.namespace("shop", world.Object{"team": "a"})
			s.begin()
			s.namespace("shop", nil)
			s.wait(time.Second)
			s.request(replica, "patch", cart, []byte("{}"))
		}},
		"in scope": {options: outside, because: "the flags select it", happens: func(s *harness) {
			s.namespace("shop", world.Object{"team": "a"})
			s.begin()
			s.request(replica, "patch", cart, []byte("{}"))
		}},
		"webhook out of scope": {options: outside, want: "scope/webhook", because: "out of scope means no patch at all", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "")
			s.wait(time.Minute)
			s.sends("update", cart, manifest(cart, "two"), "a")
		}},
		"excluded, request removed": {because: "that is allowed", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.edit(cart, func(o world.Object) { exclude(o); setAnnotation(o, prefix+"config-hash", "00") })
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
			s.wait(5 * time.Minute)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+"config-hash", "") }))
		}},
		"excluded, managed annotations written": {want: "scope/excluded", because: "it is to be let alone", happens: func(s *harness) {
			s.begin()
			s.edit(cart, exclude)
			s.wait(time.Minute)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1") }))
		}},
		"excluded, reload asked for": {want: "scope/excluded", because: "it is to be let alone", happens: func(s *harness) {
			s.begin()
			s.edit(cart, exclude)
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte(`{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"00"}}}`))
		}},
		"excluded, request removed by a request": {because: "that is allowed", happens: func(s *harness) {
			s.begin()
			s.edit(cart, exclude)
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte(`{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":null}}}`))
		}},
		"just excluded": {because: "the program may not know yet", happens: func(s *harness) {
			s.begin()
			s.edit(cart, exclude)
			s.wait(time.Second)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1") }))
		}},
		"excluded while watches are held": {because: "the program does not know", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-held", Scope: "deployments", Begin: true})
			s.edit(cart, exclude)
			s.wait(10 * time.Minute)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1") }))
		}},
	})
}

func TestCost(t *testing.T) {
	t.Parallel()
	during := func(change func(o world.Object), meanwhile func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.begin()
			sent := edited(s.objects[cart], change)
			call := s.call(user, "patch", cart, nil)
			s.oracle.Request(call)
			meanwhile(s)
			s.change(call, cart, sent, sent)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
		}
	}
	scale := func(o world.Object) { world.Section(o, "spec")["replicas"] = int64(7) }
	read := func(s *harness) { s.request(replica, "get", configMap("app"), nil) }
	runLaw(t, "cost", map[string]lawCase{
		"scaled":               {because: "nothing is read", happens: during(scale, func(*harness) {})},
		"scaled with a read":   {want: "cost/read", because: "scaling changes no template", happens: during(scale, read)},
		"scaled, another read": {because: "it is not listed", happens: during(scale, func(s *harness) { s.request(replica, "get", configMap("x"), nil) })},
		"released with a read": {because: "the template changes", happens: during(func(o world.Object) { world.Section(o, "spec", "template", "spec")["hostname"] = "x" }, read)},
		"lists with a read":    {because: "the lists change", happens: during(func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app, extra") }, read)},
		"excluded with a read": {because: "labels of ours", happens: during(func(o world.Object) {
			world.Section(o, "metadata")["labels"] = world.Object{prefix + "ignored": "false"}
		}, read)},
		"while something is up": {because: "the loop may read for another reason", happens: func(s *harness) {
			s.begin()
			s.set(configMap("extra"), "2")
			s.set(configMap("extra"), "1")
			sent := edited(s.objects[cart], scale)
			call := s.call(user, "patch", cart, nil)
			s.oracle.Request(call)
			read(s)
			s.change(call, cart, sent, sent)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
		}},
		"patches without end": {want: "cost/patches", because: "one is enough", happens: func(s *harness) {
			s.begin()
			for range 10 {
				s.request(replica, "patch", cart, []byte("{}"))
			}
			s.quiet()
		}},
		"patches in vain": {because: "conflicts are no fault", happens: func(s *harness) {
			s.begin()
			for range 10 {
				call := s.call(replica, "patch", cart, []byte("{}"))
				s.oracle.Request(call)
				s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 409})
			}
			s.quiet()
		}},
		"patches under faults": {because: "retries are no fault", happens: func(s *harness) {
			s.begin()
			s.fault("api-errors", "", time.Second)
			for range 10 {
				s.request(replica, "patch", cart, []byte("{}"))
			}
			s.quiet()
		}},
	})
}

func TestSecret(t *testing.T) {
	t.Parallel()
	const value = "correct horse battery"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	keys := world.Key{Resource: world.Secrets, Namespace: "pod-reloader", Name: "pod-reloader-digest-key"}
	sends := func(client string, key world.Key, body string) func(s *harness) {
		return func(s *harness) {
			s.set(secret("db"), value)
			s.request(client, "patch", key, []byte(body))
		}
	}
	prints := func(write func(o *Oracle, client, line string, at time.Time)) func(s *harness) {
		return func(s *harness) {
			s.set(secret("db"), value)
			write(s.oracle, replica, "error: "+value+" is wrong", s.now)
		}
	}
	runLaw(t, "secret", map[string]lawCase{
		"nothing":     {options: Options{Direct: true}, because: "there is none", happens: sends(replica, cart, `{"a":"b"}`)},
		"plain":       {options: Options{Direct: true}, want: "secret/body", because: "it left the process", happens: sends(replica, cart, `{"a":"`+value+`"}`)},
		"encoded":     {options: Options{Direct: true}, want: "secret/body", because: "it left the process", happens: sends(replica, cart, `{"a":"`+encoded+`"}`)},
		"user":        {options: Options{Direct: true}, because: "users may", happens: sends(user, cart, value)},
		"own keys":    {options: Options{Direct: true}, because: "they are its own", happens: sends(replica, keys, encoded)},
		"first bytes": {options: Options{Direct: true}, because: "it may be chance", happens: sends(replica, cart, value[:12])},
		"logged":      {options: Options{Direct: true}, want: "secret/log", because: "logs are kept elsewhere", happens: prints((*Oracle).Log)},
		"explained": {options: Options{Direct: true}, want: "secret/why", because: "a user may read it who may read no Secret", happens: prints(func(o *Oracle, _, line string, at time.Time) {
			o.Why(Question{}, line, at)
		})},
		"label of a metric": {options: Options{Direct: true}, want: "secret/metric", because: "metrics are kept elsewhere", happens: prints(func(o *Oracle, client, line string, at time.Time) {
			o.Metrics(client, map[string]*dto.MetricFamily{"m": {Metric: []*dto.Metric{{Label: []*dto.LabelPair{{Value: &line}}}}}}, at)
		})},
		"logged digest": {options: Options{Direct: true}, because: "it is no value", happens: func(s *harness) {
			s.set(secret("db"), value)
			s.oracle.Log(replica, "digest 5b0c1f6c3e0a9d42", s.now)
		}},
		"short": {options: Options{Direct: true}, because: "it may be chance", happens: func(s *harness) {
			s.set(secret("db"), "12345678")
			s.request(replica, "patch", cart, []byte("12345678"))
		}},
	})
}

func TestDescribeCountsWhatIsJudged(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{})
	s.beginWithReload()
	s.quiet()
	counts := s.oracle.Describe()
	for _, name := range []string{"restarts", "pods judged", "pods replaced", "reloads due", "settle judged", "causes judged", "Events judged"} {
		assert.Positive(t, counts[name], name)
	}
	assert.Empty(t, s.oracle.Violations())
}
