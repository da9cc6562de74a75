package referent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestWorkload(t *testing.T) {
	t.Parallel()
	owner := func(kind, name string) reference.Owner {
		return reference.Owner{Group: "example.io", Kind: kind, Name: name}
	}
	owned, selected := referent.WorkloadsDefinition{OwnedBy: true}, func(selector string) referent.WorkloadsDefinition {
		return referent.WorkloadsDefinition{Selector: selector}
	}
	instance := "app.kubernetes.io/instance"
	for name, c := range map[string]struct {
		reason   string
		resource string
		rule     referent.WorkloadsDefinition
		labels   map[string]string
		owners   []reference.Owner
		owned    []string
		labelled []string
	}{
		"no rule":           {reason: "It is found only if it is asked for.", resource: "proxies", labels: map[string]string{instance: "p"}, owners: []reference.Owner{owner("Proxy", "p")}},
		"owned":             {reason: "The resource is the plural of the kind.", resource: "proxies", rule: owned, owners: []reference.Owner{owner("Proxy", "p")}, owned: []string{"p"}},
		"owned, -ys":        {reason: "Not every plural of -y is -ies.", resource: "gateways", rule: owned, owners: []reference.Owner{owner("Gateway", "p")}, owned: []string{"p"}},
		"owned, -es":        {reason: "The plural of -s.", resource: "classes", rule: owned, owners: []reference.Owner{owner("Class", "p")}, owned: []string{"p"}},
		"owned, -s":         {reason: "Some plurals of -x have an -s.", resource: "boxs", rule: owned, owners: []reference.Owner{owner("Box", "p")}, owned: []string{"p"}},
		"owned, no plural":  {reason: "Some resources are called like the kind.", resource: "kafka", rule: owned, owners: []reference.Owner{owner("Kafka", "p")}, owned: []string{"p"}},
		"owned by another":  {reason: "Another kind of the same group.", resource: "proxies", rule: owned, owners: []reference.Owner{owner("ProxyClass", "p")}},
		"another group":     {reason: "The group counts.", resource: "proxies", rule: owned, owners: []reference.Owner{{Group: "example.com", Kind: "Proxy", Name: "p"}}},
		"irregular plural":  {reason: "It is no plural that can be known.", resource: "octopodes", rule: owned, owners: []reference.Owner{owner("Octopus", "p")}},
		"named kind":        {reason: "The configuration names the kind.", resource: "octopodes", rule: referent.WorkloadsDefinition{OwnedBy: true, OwnerKind: "Octopus"}, owners: []reference.Owner{owner("Octopus", "p")}, owned: []string{"p"}},
		"not the named":     {reason: "Only that kind counts then.", resource: "proxies", rule: referent.WorkloadsDefinition{OwnedBy: true, OwnerKind: "Octopus"}, owners: []reference.Owner{owner("Proxy", "p")}},
		"two owners":        {reason: "Each counts.", resource: "proxies", rule: owned, owners: []reference.Owner{owner("Proxy", "p"), owner("Proxy", "q")}, owned: []string{"p", "q"}},
		"no name":           {reason: "An owner that cannot exist is none.", resource: "proxies", rule: owned, owners: []reference.Owner{owner("Proxy", "P_")}},
		"label":             {reason: "The name is the value.", resource: "proxies", rule: selected(instance + "={name}"), labels: map[string]string{instance: "p"}, labelled: []string{"p"}},
		"no label":          {reason: "There is no value.", resource: "proxies", rule: selected(instance + "={name}"), labels: map[string]string{"app": "p"}},
		"empty label":       {reason: "It is no name.", resource: "proxies", rule: selected(instance + "={name}"), labels: map[string]string{instance: ""}},
		"label, no name":    {reason: "A value can have letters that no name has.", resource: "proxies", rule: selected(instance + "={name}"), labels: map[string]string{instance: "My_Release"}},
		"affixes":           {reason: "The name is a part of the value.", resource: "proxies", rule: selected("app==proxy-{name}-x"), labels: map[string]string{"app": "proxy-a.b-x"}, labelled: []string{"a.b"}},
		"affixes alone":     {reason: "The name is empty.", resource: "proxies", rule: selected("app=proxy-{name}-x"), labels: map[string]string{"app": "proxy--x"}},
		"affixes overlap":   {reason: "Prefix and suffix are not the same letters.", resource: "proxies", rule: selected("app=a-{name}-a"), labels: map[string]string{"app": "a-a"}},
		"further labels":    {reason: "All of the selector matches.", resource: "proxies", rule: selected("tier!=x,app in ({name}),team in (a,b)"), labels: map[string]string{"app": "p", "team": "b"}, labelled: []string{"p"}},
		"a rule before":     {reason: "Whatever the order of the labels.", resource: "proxies", rule: selected("a!=x,b={name}"), labels: map[string]string{"b": "p"}, labelled: []string{"p"}},
		"a label is wrong":  {reason: "All of the selector must match.", resource: "proxies", rule: selected("tier!=x,app in ({name}),team in (a,b)"), labels: map[string]string{"app": "p", "team": "b", "tier": "x"}},
		"name in two":       {reason: "Both have the same name.", resource: "proxies", rule: selected("app={name},instance=the-{name}"), labels: map[string]string{"app": "p", "instance": "the-p"}, labelled: []string{"p"}},
		"two names":         {reason: "They have different names.", resource: "proxies", rule: selected("app={name},instance=the-{name}"), labels: map[string]string{"app": "p", "instance": "the-q"}},
		"a label too long":  {reason: "No object is named so by a label.", resource: "proxies", rule: selected("app={name}"), labels: map[string]string{"app": strings.Repeat("a", 300)}},
		"owned and labeled": {reason: "Both rules may be set.", resource: "proxies", rule: referent.WorkloadsDefinition{OwnedBy: true, Selector: "app={name}"}, labels: map[string]string{"app": "q"}, owners: []reference.Owner{owner("Proxy", "p")}, owned: []string{"p"}, labelled: []string{"q"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := compile(t, referent.Definition{ID: "x", GVR: gvr(c.resource), Workloads: c.rule})
			refs := func(names []string) []reference.Ref {
				var all []reference.Ref
				for _, name := range names {
					all = append(all, reference.Ref{Kind: reference.Kind(c.resource + ".example.io"), Name: name})
				}
				return all
			}
			owned, labelled := compiled.Workload(c.labels, c.owners)
			assert.Equal(t, refs(c.owned), owned, c.reason)
			assert.Equal(t, refs(c.labelled), labelled, c.reason)
		})
	}
}
