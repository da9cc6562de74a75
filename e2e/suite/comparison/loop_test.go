package comparison_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// SAP's reconciler goes over all workloads of a config object and stops at the first conflict. Those behind it wait for
// the next try, and each try writes those before it again.
func TestContendedWorkloadDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	// First in every order of names.
	contended := s.Deployment("a", fixture.Uses{ConfigMaps: []string{"app"}})
	var others []observe.Workload
	for n := range 20 {
		others = append(others, s.Workload(fixture.Kinds[n%len(fixture.Kinds)], "b"+strconv.Itoa(n), fixture.Uses{ConfigMaps: []string{"app"}}))
	}
	mark, err := s.Installation.ControlPlane().Audit().Mark()
	require.NoError(t, err)

	stop := contend(s, contended)
	s.SetConfigMap("app", "key", "2")
	for _, w := range others {
		s.AwaitChanges(w, 1, "constant writes of another workload must not delay this one")
	}
	stop()
	s.AwaitExactly(1, "its reload stays due until it succeeds, and the tries are one restart in the end", contended)
	for _, w := range others {
		s.AssertChanges(w, 1, "retries for another workload restart nothing")
	}
	requests, err := s.Installation.ControlPlane().Audit().Since(s.Patiently(), mark)
	require.NoError(t, err)
	// A poke that the webhook was too slow for is followed by another write.
	writes, prompt := map[string]int{}, map[string]int{}
	ours := requests.By(shared.Identity().User).In(s.Namespace).Writes()
	for _, r := range ours {
		writes[r.Resource+"/"+r.Name]++
	}
	for _, r := range ours.Within(fixture.Prompt) {
		prompt[r.Resource+"/"+r.Name]++
	}
	for _, w := range others {
		name := map[string]string{
			"Deployment": "deployments/", "StatefulSet": "statefulsets/", "DaemonSet": "daemonsets/", "CronJob": "cronjobs/",
		}[w.Kind] + w.Name
		assert.Positive(t, writes[name], "the audit log has the write of %s", w)
		assert.LessOrEqual(t, prompt[name], 1, "%s was written more than once for one change", w)
	}
}

// contend gives a workload a new generation as fast as it can, until the returned function is called. It loses
// a race now and then itself.
func contend(s *fixture.Fixture, of observe.Workload) (stop func()) {
	s.Helper()
	object := s.Manifest(of.Kind, of.Name, fixture.Uses{})
	var enough atomic.Bool
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; !enough.Load(); n++ {
			patch := fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, n%2)
			err := s.Patch(s.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
			if !apierrors.IsConflict(err) {
				assert.NoError(s, err)
			}
		}
	})
	return func() { enough.Store(true); writing.Wait() }
}

// lists reports whether a request asked for all objects of a kind, as a watch does that begins with those that are there. A watch that is
// resumed asks only for what has changed since.
func lists(r controlplane.Request) bool {
	streamed := r.Verb == "watch" && strings.Contains(r.URI, "sendInitialEvents=true")
	return (streamed || r.Verb == "list") && r.Name == "" && r.Code == http.StatusOK
}

// SAP's loop does not compare before it writes: at every start and resync each referenced workload gets its dummy
// annotation anew, which is a write and an admission request for each.
func TestRestartAndRelistWriteNothing(t *testing.T) {
	s := fixture.New(t, shared)
	var workloads []observe.Workload
	for n := range 40 {
		name := "app" + strconv.Itoa(n)
		s.ConfigMap(name, fixture.Data{"key": "1"})
		s.Secret(name, fixture.Data{"key": "1"})
		uses := fixture.Uses{ConfigMaps: []string{name}, Secrets: []string{name}}
		workloads = append(workloads, s.Workload(fixture.Kinds[n%len(fixture.Kinds)], name, uses))
	}
	for _, w := range workloads {
		s.AwaitKnown(w)
	}
	s.Settled()
	cp := s.Installation.ControlPlane()
	tests := []struct {
		name, why string
		do        func(context.Context) error
	}{
		{"Restart", "both replicas were restarted", shared.RestartAll},
		// A server that has just started has no history: what was last seen of each kind is too old for it, since leases have been written.
		{"Relist", "the API server was restarted, which ends every watch", func(ctx context.Context) error {
			return cp.Component(controlplane.APIServer).Restart(ctx)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mark, err := cp.Audit().Mark()
			require.NoError(t, err)
			require.NoError(t, test.do(s.Patiently()))
			s.Reported()
			requests, err := cp.Audit().Since(s.Patiently(), mark)
			require.NoError(t, err)
			ours := requests.By(shared.Identity().User)
			for _, resource := range []string{"configmaps", "secrets", "deployments", "statefulsets", "daemonsets", "cronjobs"} {
				require.NotEmpty(t, ours.Where(func(r controlplane.Request) bool { return r.Resource == resource && lists(r) }),
					"the audit log shows that all %s were read again", resource)
			}
			assert.Empty(t, ours.In(s.Namespace).Writes(), "%s and nothing had changed", test.why)
			for _, w := range workloads {
				s.AssertChanges(w, 0, test.why)
			}
		})
	}
}
