package keyring

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// secrets reads and writes one Secret.
type secrets struct {
	rest            rest.Interface
	namespace, name string
}

func newSecrets(o Options) (secrets, error) {
	client, err := listwatch.NewTypedClient(o.Config, o.HTTPClient, corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.SecretList{})
	if err != nil {
		return secrets{}, fmt.Errorf("make a client for the Secret of the digest key: %w", err)
	}
	return secrets{rest: client, namespace: o.Namespace, name: o.Name}, nil
}

func (s secrets) get(ctx context.Context) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, listwatch.RequestTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	return secret, s.rest.Get().Namespace(s.namespace).Resource("secrets").Name(s.name).Do(ctx).Into(secret)
}

func (s secrets) create(ctx context.Context, data map[string][]byte) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, listwatch.RequestTimeout)
	defer cancel()
	created := &corev1.Secret{}
	wanted := &corev1.Secret{ObjectMeta: metaOf(s.namespace, s.name), Type: corev1.SecretTypeOpaque, Data: data}
	return created, s.rest.Post().Namespace(s.namespace).Resource("secrets").Body(wanted).Do(ctx).Into(created)
}

// follow watches the Secret until the context ends.
func (k *Keyring) follow(ctx context.Context) {
	from := listwatch.One(k.secrets.rest, "secrets", k.secrets.namespace, k.secrets.name)
	loop := listwatch.Loop[*corev1.Secret]{
		Name: "keyring", Kind: "digest-key Secret", What: "the Secret of the digest key",
		List: from.ListWithContextFunc, Watch: from.WatchFuncWithContext, Sink: sink{k}, Log: k.log,
	}
	loop.Run(ctx)
}

// sink passes what the watch delivers to the Keyring.
type sink struct{ keyring *Keyring }

// Put takes the Secret, unless a read has had a newer one: the watch may be behind.
func (s sink) Put(secret *corev1.Secret) {
	_ = s.keyring.take(secret, known{listings: s.keyring.current().listings})
}

// restart lets the watch win over requests that began earlier, and over what they have read: it is behind for a moment at most.
func (s sink) restart() {
	s.keyring.mu.Lock()
	defer s.keyring.mu.Unlock()
	s.keyring.known = known{listings: s.keyring.known.listings + 1}
}

// Remove causes the Secret to be created again, unless a read has had a newer one.
func (s sink) Remove(secret *corev1.Secret) {
	if !reference.Later(s.keyring.current().version, secret.ResourceVersion) {
		s.gone()
	}
}

func (s sink) gone() {
	s.restart()
	select {
	case s.keyring.missing <- struct{}{}:
	default: // it is going to be
	}
}

// Replace takes a listing, of one Secret or none.
func (s sink) Replace(secrets []*corev1.Secret, _ string) {
	if len(secrets) == 0 {
		s.gone()
		return
	}
	s.restart()
	s.Put(secrets[0])
}
