package chain_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// operated is the status of an object of Kroxylicious that its operator finds valid, unresolved of one that it finds invalid.
const (
	operated   = `{observedGeneration: GENERATION, conditions: [{type: ResolvedRefs, status: "True"}]}`
	unresolved = `{observedGeneration: GENERATION, conditions: [{type: ResolvedRefs, status: "False"}]}`
)

// probed are the kinds whose watches [graphFixture.settled] waits for, with the status that makes their objects ready. The kinds of
// the Gateway API and of cert-manager are not among them: other controllers, or long statuses, would have to make theirs ready. Neither
// are those with the checksums of Kroxylicious, which do not count the object itself.
var probed = map[string]string{
	"Part": "", "Gadget": "", "Operated": "", "Realm": "",
	"KafkaService": operated, "KafkaProtocolFilter": operated, "KafkaProxyIngress": operated, "VirtualKafkaCluster": operated,
}

// settled is [fixture.Fixture.Settled], which does not cover the watches of custom resources: before it, a probe of each kind that the
// test has written since the last call is changed, and the Deployment that tracks it is restarted. Events of one kind come by one watch,
// in their order, so all that was written before has been seen then.
func (s *graphFixture) settled() {
	s.Helper()
	s.written.Range(func(kind, _ any) bool {
		if _, known := probed[kind.(string)]; known && kind != s.unserved {
			s.probe(kind.(string))
		}
		return true
	})
	s.written.Clear()
	s.Settled()
}

// probe changes the probe of a kind, and waits until the Deployment that tracks it is restarted.
func (s *graphFixture) probe(kind string) {
	s.Helper()
	resource, name := resources[kind], "probe"
	if resource.ClusterScoped {
		name = s.Namespace + "-probe"
	}
	w := observe.Workload{Kind: "Deployment", Namespace: s.Namespace, Name: "probe-" + strings.ToLower(kind)}
	if s.probes[kind] == 0 {
		object := s.make(kind, name, `{probe: 0}`)
		if resource.ClusterScoped {
			s.Cleanup(func() { assert.NoError(s, client.IgnoreNotFound(s.Delete(context.WithoutCancel(s.Context()), object))) })
		}
		s.turn(kind, name)
		referent := resource.Plural + "." + resource.Group + "/" + name
		s.Deployment(w.Name, fixture.Uses{Annotations: map[string]string{referents: referent}})
		s.AwaitAdopted(w, referent)
		require.NoError(s, s.Watcher.Sync(s.Patiently()))
	}
	before := len(s.Watcher.Changes(w))
	s.turn(kind, name)
	s.AwaitChanges(w, before+1, "the probe of its kind has changed")
}

// turn changes the probe of a kind: its spec, and the checksum that counts where another controller publishes it.
func (s *graphFixture) turn(kind, name string) {
	s.Helper()
	if s.probes == nil {
		s.probes = map[string]int{}
	}
	s.probes[kind]++
	s.Merge(s.custom(kind, name), name, fmt.Sprintf(
		`{"spec":{"probe":%[1]d},"metadata":{"annotations":{"operator.example.com/checksum":"%[1]d"}}}`, s.probes[kind],
	))
	if status := probed[kind]; status != "" {
		s.report(kind, name, status)
	}
}
