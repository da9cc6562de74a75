package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestRulesCoverWhatIsReadAndWhatIsPublished(t *testing.T) {
	t.Parallel()
	resource := func(group, name string, publish bool) referent.Definition {
		return referent.Definition{GVR: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Publish: publish}
	}
	assert.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{"a"}, Resources: []string{"xs", "ys"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"a"}, Resources: []string{"ys"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"b"}, Resources: []string{"zs"}, Verbs: []string{"get", "list", "watch"}},
	}, rules([]referent.Definition{resource("a", "xs", false), resource("a", "ys", true), resource("b", "zs", false)}))
	assert.Empty(t, rules(nil))
}
