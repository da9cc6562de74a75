package permissions_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/typed/authorization/v1/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain/permissions"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func definition(resource string, publish bool) referent.Definition {
	return referent.Definition{GVR: schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: resource}, Publish: publish}
}

func TestMissingNamesTheVerbs(t *testing.T) {
	t.Parallel()
	granted := map[string]bool{"get as": true, "list as": true, "watch as": true, "get bs": true}
	ask := func(_ context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
		assert.Equal(t, "a.io", permission.Group)
		assert.Equal(t, "x", permission.Namespace)
		return granted[permission.Verb+" "+permission.Resource], nil
	}
	needed := referent.Permissions([]referent.Definition{definition("as", true), definition("bs", false)}, []string{"x"})
	missing, err := permissions.Missing(t.Context(), ask, needed)
	require.NoError(t, err)
	assert.Equal(t, "permissions on custom resources are missing: patch on as.a.io in namespace x; list, watch on bs.a.io in namespace x; "+
		"print them with pod-reloader roles --config c.yaml, and bind them to the ServiceAccount of the installation", permissions.Describe(missing, "c.yaml"))

	_, err = permissions.Missing(t.Context(), func(context.Context, authorizationv1.ResourceAttributes) (bool, error) {
		return false, errors.New("no answer")
	}, needed)
	require.Error(t, err)
	assert.Regexp(t, "^ask for the permission to (get|list|watch|patch) [ab]s.a.io: no answer$", err.Error())
}

func TestQuestionWithoutAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var questions atomic.Int32
		var definitions []referent.Definition
		for i := range 50 {
			definitions = append(definitions, definition(fmt.Sprint("r", i), true))
		}
		_, err := permissions.Missing(t.Context(), func(ctx context.Context, _ authorizationv1.ResourceAttributes) (bool, error) {
			questions.Add(1)
			<-ctx.Done()
			return false, ctx.Err()
		}, referent.Permissions(definitions, nil))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 5*time.Second, time.Since(began), "the others are not waited for")
		assert.LessOrEqual(t, questions.Load(), int32(8), "nor asked")
	})
}

func TestDescribeIsBounded(t *testing.T) {
	t.Parallel()
	var definitions []referent.Definition
	for i := range referent.MaxResources {
		definitions = append(definitions, definition(fmt.Sprintf("r%d", i), false))
	}
	text := permissions.Describe(referent.Permissions(definitions, nil), "c.yaml")
	assert.Contains(t, text, "on r5.a.io; and 58 more; print them")
	assert.NotContains(t, text, "r6.")
}

func TestQuestionsNameThePermissionAndTheAccount(t *testing.T) {
	t.Parallel()
	permission := authorizationv1.ResourceAttributes{Verb: "list", Group: "a.io", Resource: "as", Namespace: "x"}
	for name, c := range map[string]struct {
		ask  func(*fake.FakeAuthorizationV1) permissions.Ask
		want *authorizationv1.SubjectAccessReviewSpec // nil for the account itself
	}{
		"own": {ask: func(client *fake.FakeAuthorizationV1) permissions.Ask { return permissions.Own(client) }},
		"of a ServiceAccount": {
			func(client *fake.FakeAuthorizationV1) permissions.Ask {
				return permissions.OfServiceAccount(client, "system", "reloader")
			},
			&authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &permission, User: "system:serviceaccount:system:reloader",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:system", "system:authenticated"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &fake.FakeAuthorizationV1{Fake: &clienttesting.Fake{}}
			allowed, failure := true, error(nil)
			client.AddReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				status := authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}
				switch review := action.(clienttesting.CreateAction).GetObject().(type) {
				case *authorizationv1.SubjectAccessReview:
					assert.Equal(t, c.want, &review.Spec)
					return true, &authorizationv1.SubjectAccessReview{Status: status}, failure
				case *authorizationv1.SelfSubjectAccessReview:
					assert.Nil(t, c.want)
					assert.Equal(t, &permission, review.Spec.ResourceAttributes)
					return true, &authorizationv1.SelfSubjectAccessReview{Status: status}, failure
				}
				return false, nil, nil
			})
			ask := c.ask(client)
			for _, allowed = range []bool{true, false} {
				got, err := ask(t.Context(), permission)
				require.NoError(t, err)
				assert.Equal(t, allowed, got)
			}
			allowed, failure = true, errors.New("no answer")
			got, err := ask(t.Context(), permission)
			require.ErrorIs(t, err, failure)
			assert.False(t, got, "an error says nothing about the permission")
		})
	}
}
