package rotate

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
)

func (r *Rotator) followSecret(ctx context.Context) {
	follow[*corev1.Secret](ctx, r, r.api.secret, "the Secret of the certificates")
}

func (r *Rotator) followRegistration(ctx context.Context) {
	follow[*admissionv1.MutatingWebhookConfiguration](ctx, r, r.api.registration, "the webhook configuration")
}

// follow makes a step due whenever an object changes, until the context ends.
func follow[Object runtime.Object](ctx context.Context, r *Rotator, what object, name string) {
	from := listwatch.One(what.rest, what.resource, what.namespace, what.name)
	loop := listwatch.Loop[Object]{
		Name: "certificates", Kind: what.resource, List: from.ListWithContextFunc, Watch: from.WatchFuncWithContext,
		Sink: signal[Object]{r.changed}, Log: r.options.Log, What: name,
	}
	loop.Run(ctx)
}

// signal makes a step due. The step reads the object again: a watch may be behind.
type signal[Object runtime.Object] struct{ changed chan<- struct{} }

// Put takes an object that comes or changes.
func (s signal[Object]) Put(Object) { s.send() }

// Remove takes an object that is gone.
func (s signal[Object]) Remove(Object) { s.send() }

// Replace takes a listing.
func (s signal[Object]) Replace([]Object, string) { s.send() }

func (s signal[Object]) send() {
	select {
	case s.changed <- struct{}{}:
	default: // a step is due
	}
}
