package webhook_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// Out of scope is not excluded: a write that takes a workload out of the scope is not patched.
func TestScopeIsJudgedOnTheNewObject(t *testing.T) {
	t.Parallel()
	selected := func(o *webhook.Options) {
		o.Scope = scope.Scope{ObjectSelector: labels.Set{"app": "cart"}.AsSelector()}
	}
	forgotten := fixture(t, "put-without-our-annotations/request.yaml")
	leaving := bytes.Replace(forgotten, []byte(`"labels":{"app":"cart"}`), []byte(`"labels":{"app":"other"}`), 1)
	outside := bytes.ReplaceAll(forgotten, []byte(`"labels":{"app":"cart"}`), []byte(`"labels":{"app":"other"}`))
	entering := bytes.Replace(outside, []byte(`"labels":{"app":"other"}`), []byte(`"labels":{"app":"cart"}`), 1)
	tests := map[string]struct {
		body     []byte
		rule     string
		restored int
	}{
		"stays inside":  {forgotten, "annotations-missing", 2},
		"leaves":        {leaving, "", 0},
		"enters":        {entering, "annotations-missing", 2},
		"stays outside": {outside, "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			response := responseOf(t, post(newHandler(t, w, selected, logr.Discard()).handler, tt.body))
			assert.Equal(t, tt.rule, response.AuditAnnotations["rule"])
			assert.Equal(t, tt.restored, bytes.Count(response.Patch, []byte("~1config-")), "annotations that are restored: %s", response.Patch)
			assert.Zero(t, w.reads.Load())
			assert.Empty(t, response.Warnings)
		})
	}
}

// Any pod that reaches the port can ask about any namespace: only of those in scope is anything read or said.
func TestNamespacesOutOfScopeCauseNoReads(t *testing.T) {
	t.Parallel()
	selector := labels.SelectorFromSet(labels.Set{"team": "shop"})
	labelled := func(known bool, team string) func(string) (map[string]string, bool) {
		return func(namespace string) (map[string]string, bool) {
			if !known || namespace != "shop" {
				return nil, false
			}
			return map[string]string{"team": team}, true
		}
	}
	tests := map[string]struct {
		scope  scope.Scope
		labels func(string) (map[string]string, bool)
		inside bool
	}{
		"all":                       {inside: true},
		"named":                     {scope: scope.Scope{Namespaces: []string{"a", "shop"}}, inside: true},
		"not named":                 {scope: scope.Scope{Namespaces: []string{"a", "b"}}},
		"selected":                  {scope: scope.Scope{NamespaceSelector: selector}, labels: labelled(true, "shop"), inside: true},
		"not selected":              {scope: scope.Scope{NamespaceSelector: selector}, labels: labelled(true, "other")},
		"not known yet":             {scope: scope.Scope{NamespaceSelector: selector}, labels: labelled(false, ""), inside: true},
		"nothing is known":          {scope: scope.Scope{NamespaceSelector: selector}, inside: true},
		"selected but not named":    {scope: scope.Scope{Namespaces: []string{"a"}, NamespaceSelector: selector}, labels: labelled(true, "shop")},
		"not known yet nor named":   {scope: scope.Scope{Namespaces: []string{"a"}, NamespaceSelector: selector}, labels: labelled(false, "")},
		"labels that do not matter": {labels: labelled(true, "other"), inside: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			response := responseOf(t, post(newHandler(t, w, func(o *webhook.Options) {
				o.Scope, o.NamespaceLabels = tt.scope, tt.labels
			}, logr.Discard()).handler, fixture(t, "create/request.yaml")))
			assert.True(t, response.Allowed, "the creation is valid, in and out of scope")
			assert.Equal(t, tt.inside, len(response.Patch) > 0)
			assert.Equal(t, tt.inside, w.reads.Load() > 0)
		})
	}
	w := newWorld(t)
	system := bytes.ReplaceAll(fixture(t, "create/request.yaml"), []byte(`"namespace":"shop"`), []byte(`"namespace":"kube-system"`))
	assert.Empty(t, responseOf(t, post(newHandler(t, w, nil, logr.Discard()).handler, system)).Patch)
	assert.Zero(t, w.reads.Load())
}

// A workload without a pod template causes a warning, unless a label excludes it.
func TestTemplateThatIsNone(t *testing.T) {
	t.Parallel()
	const none = `"operation":"CREATE","object":{"metadata":{"namespace":"shop",LABELS"annotations":` +
		`{"pod-reloader.cs.sap.com/configmaps":"app"}},"spec":{}}`
	warningsOf := func(body string) []string {
		return responseOf(t, post(newHandler(t, newWorld(t), nil, logr.Discard()).handler, []byte(review(body)))).Warnings
	}
	plain := strings.Replace(none, "LABELS", "", 1)
	if warnings := warningsOf(plain); assert.Len(t, warnings, 1) {
		assert.Contains(t, warnings[0], "no pod template at spec.template")
	}
	ignored := strings.Replace(none, "LABELS", `"labels":{"pod-reloader.cs.sap.com/ignored":"true"},`, 1)
	assert.Empty(t, warningsOf(ignored))
}
