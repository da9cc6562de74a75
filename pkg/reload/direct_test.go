package reload

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// nothing is a client that finds nothing.
type nothing struct {
	client.Reader
	err error
}

func (n nothing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return n.err
}

// A load balancer without a route answers 404: the reload is as due as before.
func TestReloadIsRetriedOn404OfALoadBalancer(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, tc := range map[string]struct {
		err   error
		again bool
	}{
		"the workload is gone":     {apierrors.NewNotFound(resource, "web"), false},
		"a load balancer's answer": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "web", "default backend", 0, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(cluster{live: nothing{err: tc.err}}, Options{})
			s := subject{key: Key{Namespace: "shop", Name: "web"}, object: workload.Summary{Kind: workload.Builtin()[0]}}
			result := l.actions.stamp(t.Context(), s, policy.Verdict{})
			assert.Equal(t, tc.again, result.RequeueAfter > 0, "tried again")
		})
	}
}
