package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/scope"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(text)
	require.NoError(t, err)
	return parsed
}

func TestObject(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scope     scope.Scope
		namespace string
		labels    map[string]string
		want      bool
		because   string
	}{
		"zero scope":           {scope.Scope{}, "app", nil, true, "no flag limits it"},
		"control plane":        {scope.Scope{}, "kube-system", nil, false, "its workloads are never restarted"},
		"control plane, named": {scope.Scope{Namespaces: []string{"kube-system"}}, "kube-system", nil, true, "it is selected by name"},
		"named":                {scope.Scope{Namespaces: []string{"a", "b"}}, "b", nil, true, "it is on the list"},
		"not named":            {scope.Scope{Namespaces: []string{"a", "b"}}, "c", nil, false, "it is not on the list"},
		"selected":             {scope.Scope{ObjectSelector: selector(t, "tier=web")}, "app", map[string]string{"tier": "web"}, true, "its labels match"},
		"not selected":         {scope.Scope{ObjectSelector: selector(t, "tier=web")}, "app", nil, false, "it has no such label"},
		"negative selector":    {scope.Scope{ObjectSelector: selector(t, "tier!=db")}, "app", nil, true, "a label that is absent is not db"},
		"selected elsewhere": {
			scope.Scope{Namespaces: []string{"a"}, ObjectSelector: selector(t, "tier=web")},
			"b",
			map[string]string{"tier": "web"},
			false, "all limits hold together",
		},
		"namespace selector": {scope.Scope{NamespaceSelector: selector(t, "team=x")}, "app", nil, true, "labels of the namespace are another question"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tt.scope.Object(tt.namespace, tt.labels), tt.because)
		})
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		scope   scope.Scope
		name    string
		labels  map[string]string
		want    bool
		because string
	}{
		"zero scope":           {scope.Scope{}, "app", nil, true, "no flag limits it"},
		"control plane":        {scope.Scope{NamespaceSelector: labels.Everything()}, "kube-system", nil, false, "a selector does not name it"},
		"selected":             {scope.Scope{NamespaceSelector: selector(t, "team")}, "app", map[string]string{"team": "x"}, true, "its labels match"},
		"label removed":        {scope.Scope{NamespaceSelector: selector(t, "team")}, "app", nil, false, "it has left the scope"},
		"selected, not listed": {scope.Scope{Namespaces: []string{"a"}, NamespaceSelector: selector(t, "team")}, "b", map[string]string{"team": "x"}, false, "all limits hold together"},
		"object selector":      {scope.Scope{ObjectSelector: selector(t, "tier=web")}, "app", nil, true, "labels of the objects are another question"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tt.scope.Namespace(tt.name, tt.labels), tt.because)
		})
	}
}

func TestOutsideNamesTheLimitThatExcludes(t *testing.T) {
	t.Parallel()
	limits := scope.Scope{
		Namespaces: []string{"app", "kube-system"}, NamespaceSelector: selector(t, "team=x"), ObjectSelector: selector(t, "tier=web"),
	}
	team, tier := map[string]string{"team": "x"}, map[string]string{"tier": "web"}
	tests := map[string]struct {
		scope             scope.Scope
		namespace         string
		namespaced, named map[string]string
		want              string
	}{
		"in":                 {limits, "app", team, tier, ""},
		"no limits":          {scope.Scope{}, "app", nil, nil, ""},
		"control plane":      {scope.Scope{}, "kube-system", nil, nil, "kube-system is left out unless --namespaces names it"},
		"not named":          {limits, "shop", team, tier, "--namespaces does not name shop"},
		"namespace's labels": {limits, "app", nil, tier, `the labels of the namespace do not match --namespace-selector "team=x"`},
		"labels":             {limits, "app", team, nil, `its labels do not match --object-selector "tier=web"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tt.scope.Outside(tt.namespace, tt.namespaced, tt.named))
			in := tt.scope.Object(tt.namespace, tt.named) && tt.scope.Namespace(tt.namespace, tt.namespaced)
			assert.Equal(t, in, tt.want == "", "it says the same as the predicates that the loop and the webhook ask")
		})
	}
}

func TestSelectsNamespaces(t *testing.T) {
	t.Parallel()
	assert.False(t, scope.Scope{}.SelectsNamespaces(), "no watch of namespaces is needed")
	assert.False(t, scope.Scope{NamespaceSelector: labels.Everything()}.SelectsNamespaces(), "an empty selector selects all")
	assert.True(t, scope.Scope{NamespaceSelector: selector(t, "team=x")}.SelectsNamespaces(), "the selector needs the labels of namespaces")
}

func TestLooksAt(t *testing.T) {
	t.Parallel()
	s := scope.Scope{ObjectSelector: selector(t, "tier in (web,db),!legacy")}
	assert.True(t, s.LooksAt("tier"), "the selector names this label")
	assert.True(t, s.LooksAt("legacy"), "its absence is looked at")
	assert.False(t, s.LooksAt("app"), "the selector does not name it")
	assert.False(t, scope.Scope{}.LooksAt("tier"), "there is no selector")
}

func TestIgnoredNamespacesAreOutOfScope(t *testing.T) {
	t.Parallel()
	for _, s := range []scope.Scope{{Ignored: []string{"dev"}}, {Ignored: []string{"dev"}, Namespaces: []string{"dev", "shop"}}} {
		assert.False(t, s.Object("dev", nil), "its namespace is ignored")
		assert.False(t, s.Namespace("dev", nil), "it is ignored")
		assert.Equal(t, "--namespaces-to-ignore names dev", s.Outside("dev", nil, nil))
		assert.True(t, s.Object("shop", nil), "its namespace is in scope")
		assert.Empty(t, s.Outside("shop", nil, nil))
	}
}
