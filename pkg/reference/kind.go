package reference

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds returns the kinds of config objects that every cluster has.
func Kinds() []Kind { return []Kind{ConfigMap, Secret} }

// secretsStore returns the API of the Secrets Store CSI driver.
func secretsStore() schema.GroupVersion {
	return schema.GroupVersion{Group: "secrets-store.csi.x-k8s.io", Version: "v1"}
}

// PodStatuses returns the resource that has the content of SecretProviderClasses.
func PodStatuses() schema.GroupVersionResource {
	return secretsStore().WithResource("secretproviderclasspodstatuses")
}

// GroupVersionKind returns the kind as the API has it; false if it has none.
func (k Kind) GroupVersionKind() (schema.GroupVersionKind, bool) {
	switch k {
	case ConfigMap:
		return corev1.SchemeGroupVersion.WithKind("ConfigMap"), true
	case Secret:
		return corev1.SchemeGroupVersion.WithKind("Secret"), true
	case SecretProviderClass:
		return secretsStore().WithKind("SecretProviderClass"), true
	default:
		return schema.GroupVersionKind{}, false
	}
}

// Resource returns the name of the objects in request paths and in the rules of a Role; of a custom resource with its group.
func (k Kind) Resource() string {
	switch {
	case k.Custom():
		return string(k)
	case k == SecretProviderClass:
		return "secretproviderclasses"
	default:
		return string(k) + "s"
	}
}

// Content returns the resource that is watched for changes of the content, as watches are named: "secrets",
// "deployments.apps".
func (k Kind) Content() string {
	if k == SecretProviderClass {
		return PodStatuses().GroupResource().String()
	}
	return k.Resource()
}

// Custom reports whether the kind is a custom resource, by its name and group: kafkaproxies.kroxylicious.io.
func (k Kind) Custom() bool { return strings.Contains(string(k), ".") }

// CustomKind returns the kind of a custom resource, which has a group.
func CustomKind(resource schema.GroupResource) Kind { return Kind(resource.String()) }

// GroupResource returns the resource of a custom kind.
func (k Kind) GroupResource() schema.GroupResource { return schema.ParseGroupResource(string(k)) }
