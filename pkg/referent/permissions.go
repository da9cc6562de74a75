package referent

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permission is what is needed on a resource in a namespace, or in all of them.
type Permission struct {
	Verbs    []string
	Resource schema.GroupResource
	// Namespace is empty for all namespaces, and for a resource that has none.
	Namespace string
}

// String is for a message: get, list, watch on kafkaproxies.kroxylicious.io in namespace proxies.
func (r Permission) String() string {
	text := fmt.Sprintf("%s on %s", strings.Join(r.Verbs, ", "), r.Resource)
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// Verbs are those that a resource needs: patch only to publish its digest.
func (d Definition) Verbs() []string {
	verbs := []string{"get", "list", "watch"}
	if d.Publish {
		verbs = append(verbs, "patch")
	}
	return verbs
}

// Permissions are those that some resources need in some namespaces, in the order of both; no namespace is all of them.
func Permissions(definitions []Definition, namespaces []string) []Permission {
	var all []Permission
	for _, d := range definitions {
		in := slices.Clone(namespaces)
		if len(in) == 0 || d.ClusterScoped {
			in = []string{""}
		}
		for _, namespace := range in {
			all = append(all, Permission{Verbs: d.Verbs(), Resource: d.GVR.GroupResource(), Namespace: namespace})
		}
	}
	return all
}
