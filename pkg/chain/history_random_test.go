package chain

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// changing is a graph of a proxy above services, some of which may be absent, above shared Secrets, all of which change at random.
type changing struct {
	*testing.T
	random   *rand.Rand
	ring     digest.Ring
	schema   *referent.Schema
	graph    *referent.Graph
	history  history
	contents map[referent.Key]string
}

const servicesInTest, secretsInTest = 4, 2

func newChanging(t *testing.T, seed uint64) *changing {
	t.Helper()
	gvr := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: resource}
	}
	compiled, faults := referent.Compile(nil, []referent.Definition{
		{ID: "services", GVR: gvr("kafkaservices"), Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}}},
		{ID: "proxies", GVR: gvr("kafkaproxies"), Refs: []referent.EdgeDefinition{
			{Resource: "services", Name: "spec.services[*]"}, {Resource: "services", Name: "spec.optional[*]", Optional: true},
		}},
	}, "example.org/checksum")
	require.Empty(t, faults)
	c := &changing{
		T: t, random: rand.New(rand.NewPCG(seed, 1)), ring: digesttest.Ring(t, "1"), schema: compiled, contents: map[referent.Key]string{},
	}
	graph, err := referent.NewGraph(compiled, c.ring)
	require.NoError(t, err)
	for _, resource := range compiled.Resources() {
		graph.SetSource(resource, "", referent.SourceSynced)
	}
	c.graph = graph
	c.history.spare = defaultSpare
	c.history.begin()
	return c
}

// put creates or changes a custom resource, or deletes it where the spec is nil.
func (c *changing) put(resource, name string, spec map[string]any) {
	of, _ := c.schema.Resource(schema.GroupResource{Group: "kroxylicious.io", Resource: resource})
	key := of.Key("ns", name)
	if spec == nil {
		delete(c.contents, key)
		c.graph.Delete(key)
		return
	}
	object := named(name)
	object.Object["spec"] = spec
	c.contents[key] = fmt.Sprint(spec)
	c.graph.Put(of.Read(object))
}

// change changes one object at random.
func (c *changing) change() {
	switch kind := c.random.IntN(10); {
	case kind < 3:
		key := c.secret(c.random.IntN(secretsInTest))
		c.contents[key] = fmt.Sprint(c.random.IntN(2))
		c.read(key)
	case kind < 7:
		name := fmt.Sprint("s", c.random.IntN(servicesInTest))
		if c.random.IntN(2) == 0 {
			c.put("kafkaservices", name, nil)
		} else {
			c.put("kafkaservices", name, map[string]any{"secret": fmt.Sprint(c.random.IntN(secretsInTest)), "port": int64(c.random.IntN(2))})
		}
	case c.random.IntN(2) == 0:
		c.put("kafkaproxies", "p", nil)
	default:
		c.put("kafkaproxies", "p", map[string]any{
			"services": []any{"s0", "s1"}, "optional": []any{"s2", "s3", "never"}, "size": int64(c.random.IntN(2)),
		})
	}
}

func (*changing) secret(n int) referent.Key {
	return referent.ConfigKey("ns", reference.Ref{Kind: reference.Secret, Name: fmt.Sprint(n)})
}

// read gives the graph the content of a Secret.
func (c *changing) read(key referent.Key) {
	ref, _ := key.Ref()
	state := digest.State{Absent: true}
	if content, ok := c.contents[key]; ok {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ref.Name}, Data: map[string][]byte{"k": []byte(content)}}
		state = digest.StateOf(digest.OfSecret(secret), "u", "1", c.ring)
	}
	c.graph.SetConfig("ns", ref, state)
}

// evaluate takes the changes into the history, and then what has to be read because of them.
func (c *changing) evaluate() {
	for range 2 {
		c.history.add(c.graph, c.graph.Evaluate().Changes, c.ring.Keys(), time.Now())
		for _, key := range c.graph.UnreadConfig() {
			c.read(key)
		}
	}
}

// An object has changed, and nothing of which that can be said is left out.
func TestCausesAreWhatHasChanged(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	for seed := range uint64(300) {
		c := newChanging(t, seed)
		proxies, _ := c.schema.Resource(schema.GroupResource{Group: "kroxylicious.io", Resource: "kafkaproxies"})
		root := proxies.Key("ns", "p")
		var before map[referent.Key]string
		var below []referent.Key
		last := ""
		for n := range secretsInTest {
			c.contents[c.secret(n)] = "0"
			c.put("kafkaservices", fmt.Sprint("other-", n), map[string]any{"secret": fmt.Sprint(n)}) // it keeps the Secret in the graph
		}
		for step := range 60 {
			for range 1 + c.random.IntN(3) {
				c.change()
			}
			c.evaluate()
			tracked, hold := c.history.tracked[root], c.graph.Hold(root)
			if hold != nil {
				continue
			}
			now := newest(tracked.entries)
			if last != "" && now != last {
				causes := tracked.list[len(tracked.list)-1].Causes
				where := fmt.Sprintf("seed %d, step %d: %v, below before %v, contents %v and %v", seed, step, causes, below, before, c.contents)
				require.NotEmpty(t, causes, where)
				for _, key := range below { // what has come below it since may be named, or what refers to that
					changed := before[key] != c.contents[key]
					named := slices.Contains(causes, key.Word("ns"))
					known := len(c.history.contents[key]) < maxSteps
					require.False(t, named && !changed && known, "%s named: %s", key, where)
					stays := slices.Contains(c.graph.Below(root), key)
					require.False(t, stays && changed && !named && len(causes) < referent.MaxCauses, "%s not named: %s", key, where)
				}
			}
			if now != last {
				before, below, last = maps.Clone(c.contents), c.graph.Below(root), now
			}
		}
	}
}
