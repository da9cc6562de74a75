package rotate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/certs"
	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
)

// fieldManager owns the caBundle, so that server-side apply by others leaves it as it is.
const fieldManager = "pod-reloader"

// object is one named object, by the requests that RBAC can restrict to its name; creation is the exception.
type object struct {
	rest                      rest.Interface
	resource, namespace, name string
}

// api reads and writes the Secret and the webhook configuration.
type api struct {
	secret, registration object
}

func newAPI(o Options, client *http.Client) (api, error) {
	core, err := listwatch.NewTypedClient(o.Config, client, corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.SecretList{})
	if err != nil {
		return api{}, fmt.Errorf("make a client for the Secret of the webhook's certificates: %w", err)
	}
	admission, err := listwatch.NewTypedClient(o.Config, client, admissionv1.SchemeGroupVersion,
		&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfigurationList{})
	if err != nil {
		return api{}, fmt.Errorf("make a client for the webhook configuration: %w", err)
	}
	return api{
		secret:       object{core, "secrets", o.Namespace, o.Secret},
		registration: object{admission, "mutatingwebhookconfigurations", "", o.WebhookConfiguration},
	}, nil
}

func (o object) request(r *rest.Request) *rest.Request {
	if o.namespace != "" {
		r = r.Namespace(o.namespace)
	}
	return r.Resource(o.resource)
}

func (o object) get(ctx context.Context, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, listwatch.RequestTimeout)
	defer cancel()
	return o.request(o.rest.Get()).Name(o.name).Do(ctx).Into(into)
}

// save writes the content of the Secret. A Secret that was read is only updated if it is still the same.
func (a api) save(ctx context.Context, secret *corev1.Secret, data certs.Data) error {
	ctx, cancel := context.WithTimeout(ctx, listwatch.RequestTimeout)
	defer cancel()
	if secret == nil {
		created := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.secret.namespace, Name: a.secret.name,
				Labels: map[string]string{"app.kubernetes.io/managed-by": "pod-reloader"},
			},
			Type: corev1.SecretTypeOpaque, Data: data,
		}
		return a.secret.request(a.secret.rest.Post()).Body(created).Do(ctx).Error()
	}
	updated := secret.DeepCopy()
	updated.Data = data
	return a.secret.request(a.secret.rest.Put()).Name(a.secret.name).Body(updated).Do(ctx).Error()
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// trust sets the caBundle of all webhooks, and nothing else, if the configuration is still the same.
func (a api) trust(ctx context.Context, registration *admissionv1.MutatingWebhookConfiguration, bundle []byte) error {
	ctx, cancel := context.WithTimeout(ctx, listwatch.RequestTimeout)
	defer cancel()
	// A resource version that is not the present one is a conflict.
	patch := []operation{{"replace", "/metadata/resourceVersion", registration.ResourceVersion}}
	for i := range registration.Webhooks {
		patch = append(patch, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	return a.registration.request(a.registration.rest.Patch(types.JSONPatchType)).Name(a.registration.name).
		Param("fieldManager", fieldManager).Body(text).Do(ctx).Error()
}
