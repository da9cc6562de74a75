package configuration_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestReferents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/referents.yaml")
	require.NoError(t, err)
	got, err := configuration.Parse(text)
	require.NoError(t, err)
	require.Len(t, got.Referents, 8)
	group := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: resource}
	}
	assert.Equal(t, referent.Definition{
		ID: "services", GVR: group("kafkaservices"), Publish: true,
		Ready: referent.ReadyDefinition{
			ObservedGeneration: "status.observedGeneration",
			Conditions:         []referent.ConditionDefinition{{Type: "ResolvedRefs", Status: "True"}},
		},
		Refs: []referent.EdgeDefinition{
			{Resource: "secrets", Name: "spec.tls.certificateRef.name"},
			{Resource: "configmaps", Name: "spec.tls.trustAnchorRef.name", Kind: "ConfigMap"},
			{Resource: "secrets", Name: "spec.tls.trustAnchorRef.name", Kind: "Secret"},
		},
	}, got.Referents[0])
	assert.Equal(t, referent.Definition{
		ID: "proxies", GVR: group("kafkaproxies"), Self: referent.SelfDefinition{Rule: "none"},
		Referrers: []referent.EdgeDefinition{{Resource: "virtualclusters", Name: "spec.proxyRef.name"}},
		Workloads: referent.WorkloadsDefinition{OwnedBy: true, OwnerKind: "KafkaProxy", Selector: "app.kubernetes.io/instance={name}"},
	}, got.Referents[4])
	assert.Equal(t, []string{"certificates"}, got.Referents[6].Refs[0].Namespaces)
	assert.Equal(t, []string{"spec.rules", "status.parents[*].parentRef"}, got.Referents[7].Self.Fields)

	_, faults := referent.Compile(field.NewPath("referents"), got.Referents, "example.com/checksum")
	assert.Empty(t, faults, "with another prefix, too")
}

func TestReferentsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	gvr := "gvr: {group: a.io, version: v1, resource: as}"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no list":         {"referents: {}", []string{`referents: Invalid value: "a mapping": want a list`}},
		"no mapping":      {"referents: [services]", []string{`referents[0]: Invalid value: "services": want a mapping`}},
		"unknown fields":  {"referents: [{id: a, " + gvr + ", ref: [], refs: [{from: a}], ready: {x: 1}, workloads: {owned: true}}]", []string{"referents[0].ref: Forbidden", "referents[0].refs[0].from: Forbidden: this field is unknown; known are to, name", "referents[0].ready.x: Forbidden", "referents[0].workloads.owned: Forbidden: this field is unknown; known are ownedBy, ownerKind, selector"}},
		"types":           {"referents: [{id: 1, gvr: a, publish: 'yes', scope: cluster, ready: {conditions: [{status: true}]}}]", []string{`referents[0].id: Invalid value: "1": want a string`, `gvr: Invalid value: "a": want a mapping`, `publish: Invalid value: "yes": want true or false`, `scope: Unsupported value: "cluster"`, `conditions[0].status: Invalid value: "true": want a string; a number, true or null is one in quotes`}},
		"workloads":       {"referents: [{id: a, " + gvr + ", workloads: {ownedBy: 'yes', selector: 1}}, {id: b, workloads: all, " + gvr + "}]", []string{`referents[0].workloads.ownedBy: Invalid value: "yes": want true or false`, `referents[0].workloads.selector: Invalid value: "1": want a string`, `referents[1].workloads: Invalid value: "all": want a mapping`}},
		"selector":        {"referents: [{id: a, " + gvr + ", workloads: {selector: app=web}}]", []string{`referents[0].workloads.selector: Invalid value: "app=web": want a label selector that has the name`}},
		"10,000":          {"referents: [" + strings.Repeat("{id: a},", 10_000) + "]", []string{"referents: Too many: 10000: must have at most 64 items"}},
		"too long":        {"referents: [" + strings.Repeat("{id: a, "+gvr+"},", 100_000) + "]", []string{"bytes are too many: at most 1048576 are read"}},
		"too deep":        {"referents: " + levels(63), []string{"referents[46]: Invalid value: \"l46\": 17 references follow each other: the limit is 16"}},
		"a depth of 1000": {"referents: " + levels(1000), []string{"referents: Too many: 1001: must have at most 64 items"}},
		"self":            {"referents: [{id: a, " + gvr + ", self: {fields: []}}, {id: b, self: [], " + gvr + "}]", []string{"referents[0].self.fields: Required", "referents[1].self: Invalid value: \"a list\""}},
		"what it means":   {"referents: [{id: a, " + gvr + ", refs: [{to: b, name: 'spec..c'}, {to: a, name: 'spec.c{'}]}]", []string{`referents[0].refs[0].to: Invalid value: "b": no resource has this id`, `referents[0].refs[1].name: Invalid value: "spec.c{": byte 7`}},
		"beside the rest": {"workloadKinds: [x]\nreferents: [{}]", []string{"workloadKinds[0]: Invalid", "referents[0].id: Required"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := configuration.Parse([]byte(header + c.text))
			require.Error(t, err)
			assert.Zero(t, got)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// levels is a list of resources of which each refers to the next one.
func levels(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "{id: l%d, gvr: {group: a.io, version: v1, resource: l%d}, refs: [{to: l%d, name: spec.next}]}, ", i, i, i+1)
	}
	return fmt.Sprintf("[%s{id: l%d, gvr: {group: a.io, version: v1, resource: l%d}}]", b.String(), depth, depth)
}
