package oracle

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	prefix  = "pod-reloader.cs.sap.com/"
	replica = "replica-0.1"
	user    = "user"
)

// harness feeds an oracle with what happens in a small cluster.
type harness struct {
	t       *testing.T
	oracle  *Oracle
	now     time.Time
	version int64
	number  int
	objects map[world.Key]world.Object
	// pods has the keys of the pods of the last rollout.
	pods []world.Key
	// reloads counts the Events.
	reloads int
	// reporter is the replica that writes Events; replica if empty.
	reporter string
}

func newHarness(t *testing.T, options Options) *harness {
	t.Helper()
	if options.Settle == 0 {
		options.Settle, options.SettleMax, options.Refractory = time.Second, 5*time.Second, 5*time.Second
	}
	s := &harness{
		t: t, oracle: New(options), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), version: 100,
		objects: map[world.Key]world.Object{},
	}
	s.startProgram()
	s.wait(time.Minute)
	return s
}

func (s *harness) startProgram() {
	s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica})
	s.request(replica, "list", world.Key{Resource: world.Deployments}, nil)
	s.write(replica, "create", world.Key{Resource: world.Leases, Namespace: "pod-reloader", Name: "lease"},
		world.Object{"spec": world.Object{"holderIdentity": replica}})
	s.namespace("shop", nil)
}

func (s *harness) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *harness) tick() {
	s.request(replica, "update", world.Key{Resource: world.Leases, Name: "lease"}, nil)
}

// later waits, and has the oracle judge what is late by then.
func (s *harness) later(d time.Duration) {
	s.wait(d)
	s.tick()
}

// beginWithChange is begin, and a change of configmap/app a second before what follows.
func (s *harness) beginWithChange() {
	s.begin()
	s.set(configMap("app"), "2")
	s.wait(time.Second)
}

// beginWithReload is beginWithChange, and the reload and rollout that follow.
func (s *harness) beginWithReload() {
	s.beginWithChange()
	s.reload(cart, "b", "configmap/app modified")
	s.rollout(cart)
}

// beginWithChangesOfBoth begins with workloads whose two ConfigMaps have changed.
func (s *harness) beginWithChangesOfBoth() {
	s.begin()
	s.set(configMap("app"), "2")
	s.set(configMap("extra"), "2")
	s.wait(time.Second)
}

func (s *harness) call(client, verb string, key world.Key, body []byte) *world.Call {
	s.number++
	return &world.Call{
		Number: int64(s.number), Client: client, Verb: verb, Key: key, Body: body, Arrived: s.now, ArrivedVersion: s.version,
		ContentType: "application/merge-patch+json",
	}
}

// request is a request that is answered at once.
func (s *harness) request(client, verb string, key world.Key, body []byte) *world.Call {
	call := s.call(client, verb, key, body)
	s.oracle.Request(call)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
	return call
}

// change stores an object, or deletes it, by a request.
func (s *harness) change(call *world.Call, key world.Key, sent, next world.Object) {
	s.version++
	commit := world.Commit{At: s.now, Version: s.version, Key: key, Call: call, Sent: sent, New: next}
	if old, ok := s.objects[key]; ok {
		commit.Old = old
	}
	if next == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = next
	}
	s.oracle.Commit(commit)
}

// write is a write that no webhook changes.
func (s *harness) write(client, verb string, key world.Key, next world.Object) {
	body, err := json.Marshal(next)
	require.NoError(s.t, err)
	call := s.call(client, verb, key, body)
	s.oracle.Request(call)
	s.change(call, key, next, next)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

func (s *harness) namespace(name string, labels world.Object) {
	s.write(user, "update", world.Key{Resource: world.Namespaces, Name: name}, world.Object{"metadata": world.Object{"name": name, "labels": labels}})
}

func configMap(name string) world.Key {
	return world.Key{Resource: world.ConfigMaps, Namespace: "shop", Name: name}
}

func secret(name string) world.Key {
	return world.Key{Resource: world.Secrets, Namespace: "shop", Name: name}
}

// set gives a config object a value.
func (s *harness) set(key world.Key, value string) {
	if key.Resource == world.Secrets {
		value = base64.StdEncoding.EncodeToString([]byte(value))
	}
	s.write(user, "update", key, world.Object{"metadata": world.Object{"name": key.Name}, "data": world.Object{"key": value}})
}

// remove deletes an object.
func (s *harness) remove(client string, key world.Key) {
	call := s.call(client, "delete", key, nil)
	s.oracle.Request(call)
	s.change(call, key, nil, nil)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

var cart = world.Key{Resource: world.Deployments, Namespace: "shop", Name: "cart"}

// manifest is a Deployment that lists the ConfigMaps app and extra, and requires app.
func manifest(key world.Key, image string) world.Object {
	return world.Object{
		"apiVersion": "apps/v1", "kind": key.Resource.Kind,
		"metadata": world.Object{
			"name": key.Name, "namespace": key.Namespace, "uid": "uid-" + key.Name,
			"annotations": world.Object{prefix + "configmaps": " app,extra,, app"},
		},
		"spec": world.Object{
			"replicas": int64(2),
			"template": world.Object{
				"metadata": world.Object{"labels": world.Object{"app": key.Name}},
				"spec": world.Object{"containers": []any{world.Object{
					"image": image, "envFrom": []any{world.Object{"configMapRef": world.Object{"name": "app"}}},
				}}},
			},
		},
	}
}

// edited returns a copy of an object, deep where it is an object.
func edited(o world.Object, edit func(o world.Object)) world.Object {
	content, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	copied := world.Object{}
	if err := json.Unmarshal(content, &copied); err != nil {
		panic(err)
	}
	edit(copied)
	return copied
}

func setAnnotation(o world.Object, name, value string) {
	metadata := world.Section(o, "metadata")
	annotations := maps.Clone(world.Section(metadata, "annotations"))
	if annotations == nil {
		annotations = world.Object{}
	}
	if value == "" {
		delete(annotations, name)
	} else {
		annotations[name] = value
	}
	metadata["annotations"] = annotations
}

// excludedBy gives a workload a label of the program that leaves it out.
func excludedBy(label string) func(o world.Object) {
	return func(o world.Object) { world.Section(o, "metadata")["labels"] = world.Object{prefix + label: "true"} }
}

// stamped returns a workload with a hash on its template.
func stamped(o world.Object, hash string) world.Object {
	return edited(o, func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", hash) })
}

// sends is a user's write of a workload that the webhook gives a hash; an empty one leaves it alone.
func (s *harness) sends(verb string, key world.Key, sent world.Object, hash string) {
	call := s.call(user, verb, key, nil)
	s.oracle.Request(call)
	stored := sent
	if hash != "" {
		stored = stamped(sent, hash)
	}
	s.change(call, key, sent, stored)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

// edit is a user's change of what is stored.
func (s *harness) edit(key world.Key, change func(o world.Object)) {
	sent := edited(s.objects[key], change)
	s.sends("patch", key, sent, "")
}

// reload is a reload by the program, with its Event.
func (s *harness) reload(key world.Key, hash string, changes ...string) {
	s.reloadSilently(key, hash, changes...)
	s.reportReload(key)
}

// reloadSilently is a reload by the program without an Event.
func (s *harness) reloadSilently(key world.Key, hash string, changes ...string) {
	var list []any
	for _, change := range changes {
		name, kind, _ := strings.Cut(change, " ")
		list = append(list, world.Object{"ref": name, "type": kind})
	}
	text, err := json.Marshal(world.Object{"time": s.now.Format(time.RFC3339Nano), "hash": hash, "changes": list})
	require.NoError(s.t, err)
	s.stamp(key, hash, string(text))
}

// lastReloadOfApp is a last-reload annotation of now that names app.
func (s *harness) lastReloadOfApp() string {
	return fmt.Sprintf(`{"time":%q,"changes":[{"ref":"configmap/app","type":"modified"}]}`, s.now.Format(time.RFC3339Nano))
}

// stamp is a request of the program after which the template has a hash and the workload a last-reload annotation.
func (s *harness) stamp(key world.Key, hash, lastReload string) {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"%sconfig-hash":"x"}}}`, prefix)
	if s.oracle.options.Direct {
		body = []byte(`[{"op":"add","path":"/spec/template/metadata/annotations"}]`)
	}
	call := s.call(replica, "patch", key, body)
	s.oracle.Request(call)
	next := edited(stamped(s.objects[key], hash), func(o world.Object) { setAnnotation(o, prefix+"last-reload", lastReload) })
	s.change(call, key, s.objects[key], next)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

// reportReload writes the Event of a reload, with the changes that the last one names.
func (s *harness) reportReload(key world.Key) {
	var last lastReload
	_ = json.Unmarshal([]byte(world.Text(world.Annotations(s.objects[key]), prefix+reloadAnnotation)), &last)
	note := "pod template updated"
	for _, change := range last.Changes {
		note += ", " + change.String()
	}
	s.reportReloadWith(key, note)
}

// reportReloadWith writes the Event of a reload with a text.
func (s *harness) reportReloadWith(key world.Key, note string) {
	s.reloads++
	s.eventWith(key, fmt.Sprintf("reload-%d", s.reloads), "Normal", "Reloaded", note)
}

func (s *harness) event(about world.Key, name, kind, reason string) {
	s.eventWith(about, name, kind, reason, "")
}

// warn writes an Event about a watch that fails.
func (s *harness) warn(about world.Key, note string) {
	s.eventWith(about, "blind", "Warning", "WatchFailing", note)
}

func (s *harness) eventWith(about world.Key, name, kind, reason, note string) {
	s.write(cmp.Or(s.reporter, replica), "create", world.Key{Resource: world.Events, Namespace: about.Namespace, Name: name}, world.Object{
		"type": kind, "reason": reason, "note": note,
		"regarding": world.Object{"kind": about.Resource.Kind, "namespace": about.Namespace, "name": about.Name, "uid": "uid-" + about.Name},
	})
}

// rollout makes the ReplicaSet and one running pod of the present template, and deletes the pods of the one before.
func (s *harness) rollout(key world.Key) {
	old := s.pods
	s.pods = []world.Key{s.pod(key, key.Name+fmt.Sprintf("-%d", s.version))}
	for _, pod := range old {
		s.change(nil, pod, nil, nil)
	}
}

// pod starts a pod of the present template.
func (s *harness) pod(of world.Key, name string) world.Key {
	template := world.Section(s.objects[of], "spec", "template")
	set := world.Key{Resource: world.ReplicaSets, Namespace: of.Namespace, Name: "rs-" + name}
	s.change(nil, set, nil, world.Object{
		"metadata": world.Object{"uid": "uid-" + set.Name, "ownerReferences": owner(of)},
		"spec":     world.Object{"template": template},
	})
	return s.podOf(set, name, template)
}

// podOf starts a pod of a ReplicaSet.
func (s *harness) podOf(set world.Key, name string, template world.Object) world.Key {
	pod := world.Key{Resource: world.Pods, Namespace: set.Namespace, Name: name}
	metadata := maps.Clone(world.Section(template, "metadata"))
	metadata["name"], metadata["uid"], metadata["ownerReferences"] = name, "uid-"+name, owner(set)
	metadata["creationTimestamp"] = s.now.Format(time.RFC3339)
	waiting := world.Object{"metadata": metadata, "spec": template["spec"], "status": world.Object{"phase": "Pending"}}
	s.change(nil, pod, nil, waiting)
	running := maps.Clone(waiting)
	running["status"] = world.Object{"phase": "Running"}
	s.change(nil, pod, nil, running)
	return pod
}

func owner(key world.Key) []any {
	return []any{world.Object{"kind": key.Resource.Kind, "uid": "uid-" + key.Name, "controller": true}}
}

// fault lasts for a while.
func (s *harness) fault(kind, scope string, lasting time.Duration) {
	s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope, Begin: true})
	s.wait(lasting)
	s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope})
}

// begin creates app, extra and cart, which the webhook stamps with the hash "a".
func (s *harness) begin() {
	s.set(configMap("app"), "1")
	s.set(configMap("extra"), "1")
	hash := "a"
	if s.oracle.options.Direct {
		hash = ""
	}
	s.sends("create", cart, manifest(cart, "one"), hash)
	s.wait(100 * time.Millisecond)
	s.rollout(cart)
	s.wait(time.Minute)
}

// quiet ends the history long after everything.
func (s *harness) quiet() {
	s.wait(10 * time.Minute)
	s.oracle.Quiet(s.now)
}
