package listwatch

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// RequestTimeout bounds a read or write of one object: a connection can be dead without an error.
const RequestTimeout = 10 * time.Second

// NewClient returns a client for the resources of one version, in one content type.
func NewClient(
	to *rest.Config, client *http.Client, version schema.GroupVersion, codecs runtime.NegotiatedSerializer, contentType string,
) (rest.Interface, error) {
	config := rest.CopyConfig(to)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, "/apis", codecs
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.QPS = -1 // the API server limits requests, by priority and fairness
	return rest.RESTClientForConfigAndClient(config, client)
}

// NewTypedClient returns a client for some types of one version, with a scheme for these alone: that of client-go keeps all types in
// memory.
func NewTypedClient(to *rest.Config, client *http.Client, version schema.GroupVersion, types ...runtime.Object) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version, types...)
	metav1.AddToGroupVersion(scheme, version)
	return NewClient(to, client, version, serializer.NewCodecFactory(scheme).WithoutConversion(), runtime.ContentTypeJSON)
}
