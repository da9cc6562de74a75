package action

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// manifests stores the manifests of Jobs that are created again, in Secrets.
type manifests struct {
	writer

	store  jobrun.Store
	gather gather.Gatherer
	// known are the Secrets that this process knows of.
	known *state.Recreations
}

// recreation is a manifest with its Secret.
type recreation struct {
	secret   *unstructured.Unstructured
	manifest jobrun.Manifest
}

func (r recreation) name() types.NamespacedName { return client.ObjectKeyFromObject(r.secret) }

// add stores a manifest, and returns its Secret. Where that may be there, it is known also where an error is returned. The Job is deleted
// by its UID after the rootCA is read: so this is the namespace of the Job.
func (m manifests) add(ctx context.Context, s gather.Subject, manifest jobrun.Manifest) (*unstructured.Unstructured, error) {
	root, err := rootCA(ctx, m.gather.APIReader, s.Key.Namespace)
	if err != nil && !apianswer.NotFound(err) && !apierrors.IsForbidden(err) {
		return nil, err
	}
	manifest.RootCA = root // without one, the Job is created in a later namespace of the same name, too
	secret, err := m.store.Encode(manifest)
	if err != nil {
		return nil, err
	}
	err = m.create(ctx, s, secret)
	if err == nil || apianswer.AlreadyExists(err) || apianswer.MayBeStored(err) {
		m.known.Add(s.Key, secret.GetName())
	}
	if err != nil {
		return nil, fmt.Errorf("store the manifest of the job in secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return secret, nil
}

// read reads a Secret; false if there is nothing to complete: then it is not known any more.
func (m manifests) read(ctx context.Context, key workload.Key, name string) (r recreation, found bool, err error) {
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(secretKind)
	err = m.gather.APIReader.Get(ctx, types.NamespacedName{Namespace: m.store.Namespace, Name: name}, secret)
	switch {
	case apianswer.NotFound(err):
		m.known.Done(key, name)
		return recreation{}, false, nil
	case err != nil:
		return recreation{}, false, err
	}
	manifest, err := m.store.Decode(secret)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot read the manifest of a Job; the Secret is left", "workload", key, "secret", name)
		m.known.Done(key, name)
		return recreation{}, false, nil
	}
	return recreation{secret, manifest}, true, nil
}

// end deletes a Secret, and no other one that another leader has stored under its name.
func (m manifests) end(ctx context.Context, s gather.Subject, secret *unstructured.Unstructured) error {
	uid := secret.GetUID()
	err := m.delete(ctx, s, secret, client.Preconditions{UID: &uid})
	if err != nil && !apianswer.NotFound(err) && (!apierrors.IsConflict(err) || apianswer.Denied(err)) {
		return fmt.Errorf("delete secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	m.known.Done(s.Key, secret.GetName())
	return nil
}

// manifestsOfNamespace is how many Secrets there are with manifests of one namespace, and a few more where several Jobs are deleted at the
// same time. A user of the namespace can make each of them stay, by what refuses the new Job, or by another rootCA.
const manifestsOfNamespace = 100

// limit returns an error if a namespace has as many manifests as it may have. A Secret that is left counts until it is deleted: whether
// it is, is asked for one of them, since each Job asks again at each attempt.
func (m manifests) limit(ctx context.Context, namespace string) error {
	count, left := m.known.In(namespace)
	if count < manifestsOfNamespace {
		return nil
	}
	if left.Secret != "" {
		_, err := readUID(ctx, m.gather.APIReader, secretKind, types.NamespacedName{Namespace: m.store.Namespace, Name: left.Secret})
		if apianswer.NotFound(err) {
			m.known.Done(left.Job, left.Secret)
			return m.limit(ctx, namespace)
		}
	}
	return fmt.Errorf("the Job keeps the configuration that it was started with, because %d Jobs of its namespace wait to be created again; "+
		"where they wait for long, %s", manifestsOfNamespace, m.byHand())
}

// byHand is how a user completes what was begun.
func (m manifests) byHand() string {
	return "create each Job from job.json of its Secret, and delete the Secret: kubectl get secrets --namespace " +
		m.store.Namespace + " --selector " + m.store.Selector()
}
