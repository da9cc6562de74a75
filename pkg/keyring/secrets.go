package keyring

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// secrets reaches one Secret, with a scheme that holds nothing else: client-go's own knows, and keeps in memory, all.
type secrets struct {
	rest            rest.Interface
	namespace, name string
}

func newSecrets(o Options) (secrets, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.SecretList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)

	config := rest.CopyConfig(o.Config)
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.APIPath = "/api"
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if config.QPS == 0 {
		config.QPS = -1 // 0 would be 5 requests a second
	}
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	httpClient := o.HTTPClient
	if httpClient == nil {
		config.Timeout = 0 // it would end the watch
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return secrets{}, fmt.Errorf("make a client for the Secret of the digest key: %w", err)
		}
	}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return secrets{}, fmt.Errorf("make a client for the Secret of the digest key: %w", err)
	}
	return secrets{rest: client, namespace: o.Namespace, name: o.Name}, nil
}

// patience bounds one request. A connection can be dead without anybody having noticed.
const patience = 10 * time.Second

func (s secrets) get(ctx context.Context) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	secret := &corev1.Secret{}
	return secret, s.rest.Get().Namespace(s.namespace).Resource("secrets").Name(s.name).Do(ctx).Into(secret)
}

func (s secrets) create(ctx context.Context, data map[string][]byte) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	created := &corev1.Secret{}
	wanted := &corev1.Secret{ObjectMeta: metaOf(s.namespace, s.name), Type: corev1.SecretTypeOpaque, Data: data}
	return created, s.rest.Post().Namespace(s.namespace).Resource("secrets").Body(wanted).Do(ctx).Into(created)
}

func (s secrets) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return s.these(options).Do(ctx).Get()
}

func (s secrets) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	initial := options.SendInitialEvents != nil
	options.Watch = true
	w, err := s.these(options).Watch(ctx)
	if err != nil && initial && utilnet.IsConnectionRefused(err) {
		// The reflector would retry by itself, deaf to the end of the context. follow retries better.
		return nil, errors.New(err.Error())
	}
	return w, err
}

// these is a request for a list of this one Secret, as the RBAC rule with its name admits it.
func (s secrets) these(options metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()
	return s.rest.Get().Namespace(s.namespace).Resource("secrets").VersionedParams(&options, metav1.ParameterCodec)
}

// follow watches the Secret until the context ends.
func (k *Keyring) follow(ctx context.Context) {
	source := &cache.ListWatch{ListWithContextFunc: k.secrets.list, WatchFuncWithContext: k.secrets.watch}
	between := backoff()
	reflector := cache.NewReflectorWithOptions(source, &corev1.Secret{}, &sink{k}, cache.ReflectorOptions{
		Name: "keyring", TypeDescription: "digest-key Secret", Backoff: &between,
	})
	// What the reflector tells on its way is for those who look for it.
	quiet := klog.NewContext(ctx, k.log.V(1))
	_ = pause().Until(ctx, true, true, func(context.Context) (bool, error) {
		if err := reflector.ListAndWatchWithContext(quiet); err != nil && ctx.Err() == nil {
			k.complain(err, "Cannot watch the Secret of the digest key; retrying")
		}
		return false, nil
	})
}

// sink takes what the watch delivers into the Keyring, on the reflector's goroutine.
type sink struct {
	keyring *Keyring
}

var _ cache.ReflectorStore = (*sink)(nil)

// Add takes in the Secret.
func (s *sink) Add(object any) error { return s.put(object) }

// Update takes in the Secret.
func (s *sink) Update(object any) error { return s.put(object) }

func (s *sink) put(object any) error {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("the watch of a Secret delivered a %T", object)
	}
	s.keyring.take(secret, s.count())
	return nil
}

// count makes requests that began earlier give way to what the watch has delivered.
func (s *sink) count() uint64 {
	s.keyring.mu.Lock()
	defer s.keyring.mu.Unlock()
	s.keyring.seen++
	return s.keyring.seen
}

// Delete has the Secret created again.
func (s *sink) Delete(any) error {
	s.count()
	select {
	case s.keyring.missing <- struct{}{}:
	default: // it is going to be
	}
	return nil
}

// Replace takes in a listing, of one Secret or none.
func (s *sink) Replace(objects []any, _ string) error {
	if len(objects) == 0 {
		return s.Delete(nil)
	}
	return s.put(objects[0])
}

// Resync does nothing: there is nothing to repeat.
func (s *sink) Resync() error { return nil }
