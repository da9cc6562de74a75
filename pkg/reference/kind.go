package reference

import (
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

// Resource returns the name of the objects in request paths and in the rules of a Role.
func (k Kind) Resource() string {
	if k == SecretProviderClass {
		return "secretproviderclasses"
	}
	return string(k) + "s"
}

// Content returns the resource that is watched for changes of the content, as watches are named: "secrets",
// "deployments.apps".
func (k Kind) Content() string {
	if k == SecretProviderClass {
		return PodStatuses().GroupResource().String()
	}
	return k.Resource()
}
