package referent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const annotation = "pod-reloader.cs.sap.com/referent-checksum"

func gvr(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: resource}
}

func resolved() referent.ReadyDefinition {
	return referent.ReadyDefinition{
		ObservedGeneration: "status.observedGeneration",
		Conditions:         []referent.ConditionDefinition{{Type: "ResolvedRefs", Status: "True"}},
	}
}

// kafka is a graph like that of Kroxylicious: proxies ← clusters → services → secrets, clusters → filters → configmaps.
func kafka() []referent.Definition {
	return []referent.Definition{
		{
			ID: "services", GVR: gvr("services"), Ready: resolved(), Publish: true,
			Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.tls.certificateRef.name"}},
		},
		{
			ID: "filters", GVR: gvr("filters"),
			Refs: []referent.EdgeDefinition{{Resource: "configmaps", Name: "spec.configRef.name", Optional: true}},
		},
		{
			ID: "clusters", GVR: gvr("clusters"),
			Refs: []referent.EdgeDefinition{
				{Resource: "services", Name: "spec.serviceRef.name"},
				{Resource: "filters", Name: "spec.filterRefs[*].name"},
			},
		},
		{
			ID: "proxies", GVR: gvr("proxies"), Self: referent.SelfDefinition{Rule: referent.SelfNone},
			Referrers: []referent.EdgeDefinition{{Resource: "clusters", Name: "spec.proxyRef.name"}},
		},
	}
}

func compile(t testing.TB, definitions ...referent.Definition) *referent.Schema {
	t.Helper()
	compiled, faults := referent.Compile(field.NewPath("referents"), definitions, annotation)
	require.Empty(t, faults)
	return compiled
}

func key(text string) referent.Key {
	resource, name, _ := strings.Cut(text, "/")
	if ref, err := reference.Parse(text); err == nil {
		return referent.ConfigKey("n", ref)
	}
	return referent.Key{Group: "example.io", Resource: resource, Namespace: "n", Name: name}
}

func keys(texts ...string) []referent.Key {
	var all []referent.Key
	for _, text := range texts {
		all = append(all, key(text))
	}
	return all
}

// levels is a chain of resources l0 → l1 → … whose references are all optional, or none is. The last one refers to a
// Secret as well.
func levels(depth int, optional bool) []referent.Definition {
	var all []referent.Definition
	for i := range depth + 1 {
		d := referent.Definition{
			ID: fmt.Sprintf("l%d", i), GVR: gvr(fmt.Sprintf("l%d", i)), Ready: resolved(),
			Refs: []referent.EdgeDefinition{{
				Resource: "secrets", Name: "spec.secret.name", Namespace: "spec.secret.namespace", Optional: optional,
			}},
		}
		if i < depth {
			d.Refs = append(d.Refs, referent.EdgeDefinition{Resource: fmt.Sprintf("l%d", i+1), Name: "spec.next", Optional: optional})
		}
		all = append(all, d)
	}
	// What refers to itself can be on a cycle.
	all[depth].Refs = append(all[depth].Refs, referent.EdgeDefinition{Resource: all[depth].ID, Name: "spec.same", Optional: optional})
	return all
}
