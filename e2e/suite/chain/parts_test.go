package chain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

const theParts = "parts.chain.example.com/"

// Not parallel: the metrics are those of the whole process.
func TestAChangeOfALeafEvaluatesItsAncestorsOnly(t *testing.T) {
	s := newGraphFixture(t, shared)
	const wide, leaves = 7, 10
	for i := range wide {
		for j := range wide {
			var names []string
			for k := range leaves - 1 {
				name := fmt.Sprintf("leaf-%d-%d-%d", i, j, k)
				s.make("Part", name, `{size: 1}`)
				names = append(names, name)
			}
			s.make("Part", fmt.Sprintf("branch-%d-%d", i, j), list(names))
		}
		var names []string
		for j := range wide {
			names = append(names, fmt.Sprintf("branch-%d-%d", i, j))
		}
		s.make("Part", fmt.Sprintf("limb-%d", i), list(names))
	}
	var names []string
	for i := range wide {
		names = append(names, fmt.Sprintf("limb-%d", i))
	}
	s.make("Part", "trunk", list(names))
	w := s.tracks("web", theParts+"trunk")

	s.Await("both replicas to have evaluated all", func() error {
		now, err := shared.Metrics(t.Context())
		if n := now.Sum("pod_reloader_referents"); err == nil && n < 2*498 {
			err = fmt.Errorf("%v objects", n)
		}
		return err
	})
	const ancestors = 2 * 4
	evaluations, size := 0.0, 1
	poll.Repeat(t, 3, "a replica may have been behind", func(int) bool {
		size++
		evaluations = s.evaluations(ancestors, func() {
			s.edit("Part", "leaf-3-4-5", fmt.Sprintf(`{"size":%d}`, size))
			s.rolled[w]++
			s.AwaitChanges(w, s.rolled[w], "a leaf four levels below")
			s.Merge(s.custom("Part", "leaf-1-1-1"), "leaf-1-1-1", fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, size))
		})
		return evaluations == ancestors
	})
	s.stays(w, "once") // not within the count: the barrier changes an object of its own
	s.AwaitEvent(w, "Reloaded", theParts+"trunk modified", theParts+"leaf-3-4-5")
	assert.InDelta(t, ancestors, evaluations, 0, "both replicas evaluate the leaf, its branch, its limb and the trunk")
}

// evaluations is how many objects the replicas have evaluated for some changes, once they were as many as they have to.
func (s *graphFixture) evaluations(least float64, change func()) (count float64) {
	s.Helper()
	before, err := shared.Metrics(s.Context())
	require.NoError(s, err)
	change()
	s.Await("the evaluations", func() error {
		after, err := shared.Metrics(s.Context())
		if err != nil {
			return err
		}
		if count = after.Since(before).Sum("pod_reloader_referent_evaluations_total"); count < least {
			return fmt.Errorf("%v evaluations", count)
		}
		return nil
	})
	return count
}

func list(names []string) string {
	return "{parts: [{name: " + strings.Join(names, "}, {name: ") + "}]}"
}

func TestACycleIsReportedAndHoldsNothingElse(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.make("Part", "a", `{parts: [{name: b}]}`)
	s.make("Part", "b", `{parts: [{name: c}]}`)
	s.make("Part", "c", `{size: 1}`)
	s.make("Part", "other", `{size: 1}`)
	web, other := s.tracks("web", theParts+"a"), s.tracks("other", theParts+"other")

	s.edit("Part", "c", `{"parts":[{"name":"b"}]}`)
	const way = theParts + "b → " + theParts + "c → " + theParts + "b"
	s.AwaitEvent(web, "ReferentHeld", theParts+"a", "cycle", way)
	why, err := shared.Why(t.Context(), "deployment/web", "-n", s.Namespace, fromSettings)
	require.NoError(t, err)
	assert.Contains(t, why, way)
	for _, format := range []string{"text", "dot", "mermaid"} {
		graph, err := shared.Graph(t.Context(), fromSettings, "-n", s.Namespace, "-o", format, theParts+"a")
		require.NoError(t, err)
		assert.Contains(t, graph, way, format)
	}
	s.edit("Part", "other", `{"size":2}`)
	s.rolls(other, "another graph of the namespace")
	s.stays(web, "it is held")

	s.edit("Part", "c", `{"parts":null,"size":1}`)
	s.stays(web, "what it was before the cycle")
	s.edit("Part", "c", `{"size":2}`)
	s.rolls(web, "the cycle is gone")

	s.make("Part", "self", `{parts: [{name: self}]}`)
	w := s.tracksHeld("self", theParts+"self")
	s.AwaitEvent(w, "ReferentHeld", "cycle: "+theParts+"self → "+theParts+"self")
}

func TestAnObjectThatMovesRestartsBothParents(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.Secret("tls", fixture.Data{"tls.crt": "1"})
	s.make("Part", "leaf", `{secrets: [{name: tls}]}`)
	s.make("Part", "left", `{parts: [{name: leaf}]}`)
	s.make("Part", "right", `{size: 1}`)
	left, right := s.tracks("left", theParts+"left"), s.tracks("right", theParts+"right")

	s.edit("Part", "right", `{"parts":[{"name":"leaf"}]}`)
	s.rolls(right, "the leaf came")
	s.edit("Part", "left", `{"parts":[]}`)
	s.rolls(left, "the leaf went")
	s.SetSecret("tls", "tls.crt", "2")
	s.rolls(right, "what moved counts where it is now")
	s.stays(left, "and not where it was")
	s.edit("Part", "left", `{"size":2}`)
	s.rolls(left, "it still works")
}

// A leaf that is deleted and created again and again counts once, if it differs in the end.
func TestLeafReplacedInBurstCountsOnce(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.Secret("tls", fixture.Data{"tls.crt": "0"})
	s.make("Part", "leaf", `{size: 0}`)
	s.make("Part", "root", `{parts: [{name: leaf}], secrets: [{name: tls}]}`)
	w := s.tracks("web", theParts+"root")
	replace := func(n int) {
		s.remove(&corev1.Secret{}, "tls")
		s.remove(s.custom("Part", "leaf"), "leaf")
		s.Secret("tls", fixture.Data{"tls.crt": fmt.Sprint(n)})
		s.make("Part", "leaf", fmt.Sprintf("{size: %d}", n))
	}
	for range 20 {
		replace(0)
	}
	s.stays(w, "the same in the end")
	began := time.Now()
	for n := range 20 {
		replace(n)
	}
	took := time.Since(began)
	s.Await("the last content to be counted", func() error {
		why, err := shared.Why(t.Context(), "deployment/web", "-n", s.Namespace, fromSettings)
		if err != nil || !strings.Contains(why, "nothing is due") {
			return fmt.Errorf("%w: %s", err, why)
		}
		return nil
	})
	s.Settled()
	now := len(s.Watcher.Changes(w))
	assert.GreaterOrEqual(t, now, 1)
	assert.LessOrEqual(t, now, max(3, 2+int(took/settle)), "each restart but the last takes a settle time in which nothing changes")
	s.rolled[w] = now
	s.edit("Part", "leaf", `{"size":100}`)
	s.rolls(w, "it still works")
}

// Deletion with a finalizer takes as long as the finalizer is there: until then the object is there, and its operator has not
// looked.
func TestAnObjectThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.make("Part", "leaf", `{size: 1}`)
	s.make("Part", "root", `{optional: [{name: leaf}]}`)
	s.Merge(s.custom("Part", "leaf"), "leaf", `{"metadata":{"finalizers":["example.com/stuck"]}}`)
	w := s.tracks("web", theParts+"root")
	s.remove(s.custom("Part", "leaf"), "leaf")
	s.stays(w, "it is still there")
	s.edit("Part", "root", `{"size":2}`)
	s.rolls(w, "it holds nothing")
	s.Merge(s.custom("Part", "leaf"), "leaf", `{"metadata":{"finalizers":null}}`)
	s.rolls(w, "now it is gone")
}

// The operator of an object that is to be deleted does not come to an end. What is above it is held, and the reason says so.
func TestARequiredObjectWhoseDeletionIsStuck(t *testing.T) {
	t.Parallel()
	k := newKafka(t)
	k.Merge(k.custom("KafkaService", "service"), "service", `{"metadata":{"finalizers":["example.com/stuck"]}}`)
	k.remove(k.custom("KafkaService", "service"), "service")
	k.AwaitEvent(k.proxy, "ReferentHeld", "kafkaservices.kroxylicious.io/service is stale: ", "; it is being deleted")
	k.SetSecret("tls", "tls.crt", "2")
	k.edit("KafkaProtocolFilter", "filter", `{"type":"Audit"}`)
	k.report("KafkaProtocolFilter", "filter", operated)
	k.stays(k.proxy, "its operator has not seen the deletion")
	why, err := shared.Why(t.Context(), "deployment/proxy", "-n", k.Namespace, fromSettings)
	require.NoError(t, err)
	assert.Contains(t, why, "it is being deleted")

	k.report("KafkaService", "service", operated)
	k.rolls(k.proxy, "its operator has seen it, and it can still be used")

	k.Merge(k.custom("KafkaService", "service"), "service", `{"metadata":{"finalizers":null}}`)
	k.AwaitEvent(k.proxy, "ReferentHeld", "kafkaservices.kroxylicious.io/service is missing")
	k.SetSecret("tls", "tls.crt", "3")
	k.stays(k.proxy, "now it is gone")
	k.apply("KafkaService", "service", `{bootstrapServers: "kafka:9092", tls: {certificateRef: {name: tls}, trustAnchorRef: {kind: ConfigMap, name: trust}}}`)
	k.rolls(k.proxy, "it is back, and the Secret has changed")
}

// A resource without namespace restarts the workloads of all namespaces that track it.
func TestAnObjectWithoutNamespace(t *testing.T) {
	t.Parallel()
	one, two := newGraphFixture(t, shared), newGraphFixture(t, shared)
	name := one.Namespace
	theRealm := "realms.chain.example.com/" + name
	early := one.tracksHeld("early", theRealm)
	one.AwaitEvent(early, "ReferentHeld", theRealm+": missing")
	realm := one.make("Realm", name, `{size: 1}`)
	t.Cleanup(func() { _ = client.IgnoreNotFound(one.Delete(one.Context(), realm)) })
	one.AwaitAdopted(early, theRealm)
	late := two.tracks("late", theRealm)
	one.stays(early, "it is known now")
	one.edit("Realm", name, `{"size":2}`)
	one.rolls(early, "it has changed")
	two.rolls(late, "it has changed for other namespaces, too")
	one.Merge(one.custom("Realm", name), name, `{"metadata":{"labels":{"a":"b"}}}`)
	one.stays(early, "labels do not count")
	two.stays(late, "labels do not count")
}

func TestReferencesThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.make("Part", "other", `{size: 1}`)
	other := s.tracks("other", theParts+"other")
	held := map[string]observe.Workload{}
	for spec, want := range map[string]string{
		`{parts: [{name: a, namespace: kube-system}]}`:                         `referents[6].refs[0].namespaces does not allow the reference to parts.chain.example.com/a in namespace kube-system`,
		`{parts: [{name: ../../../../api/v1/namespaces/kube-system/secrets}]}`: `referents[6].refs[0]: "../../..`,
		`{parts: [{name: "A B\n\u0007→"}]}`:                                    `names no object`,
		`{parts: [{name: {x: 1}}]}`:                                            `referents[6].refs[0]: "map[x:1]" names no object`,
		`{parts: [{name: a, namespace: [b]}]}`:                                 `"a" in namespace "[b]" names no object`,
		`{parts: [{name: ` + strings.Repeat("a", 254) + `}]}`:                  `aaa"… names no object`,
		`{parts: [{name: ` + strings.Repeat("a.", 126) + `a}]}`:                `a.a.a is missing`,
	} {
		name := fmt.Sprintf("root-%d", len(held))
		s.make("Part", name, spec)
		held[want] = s.tracksHeld(name, theParts+name)
	}
	for want, w := range held {
		s.AwaitEvent(w, "ReferentHeld", want)
	}
	s.edit("Part", "other", `{"size":2}`)
	s.rolls(other, "another graph of the namespace")
	s.edit("Part", "root-0", `{"parts":null}`)
	s.AwaitAdopted(observe.Workload{Kind: "Deployment", Namespace: s.Namespace, Name: "root-0"}, theParts+"root-0")
}
