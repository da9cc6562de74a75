package controlplane

import (
	"cmp"
	"fmt"
	"strings"
)

// CustomResource is a kind that a test installs. Its objects keep every field.
type CustomResource struct {
	Group, Kind, Plural string
	// Versions are served, the last one is stored. None means v1.
	Versions []string
	// ClusterScoped says that its objects have no namespace.
	ClusterScoped bool
	// WithoutStatus leaves the subresource status out: then a write of the object writes its status, too.
	WithoutStatus bool
	// Schema is the schema of its objects in one line; empty means one that keeps everything.
	Schema string
}

const keepingSchema = "{type: object, x-kubernetes-preserve-unknown-fields: true}"

// Definition is its CustomResourceDefinition, a YAML document for [ControlPlane.Apply].
func (r CustomResource) Definition() string {
	scope := "Namespaced"
	if r.ClusterScoped {
		scope = "Cluster"
	}
	versions := r.Versions
	if len(versions) == 0 {
		versions = []string{"v1"}
	}
	text := strings.NewReplacer(
		"GROUP", r.Group, "KIND", r.Kind, "PLURAL", r.Plural, "SINGULAR", strings.ToLower(r.Kind), "SCOPE", scope,
	).Replace(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: PLURAL.GROUP
  annotations: {api-approved.kubernetes.io: "unapproved, for tests"} # without it, groups of Kubernetes are refused
spec:
  group: GROUP
  scope: SCOPE
  names: {kind: KIND, listKind: KINDList, plural: PLURAL, singular: SINGULAR}
  versions:
`)
	subresources := "{status: {}}"
	if r.WithoutStatus {
		subresources = "{}"
	}
	for n, version := range versions {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %t, subresources: %s, schema: {openAPIV3Schema: %s}}\n",
			version, n == len(versions)-1, subresources, cmp.Or(r.Schema, keepingSchema))
	}
	return text
}
