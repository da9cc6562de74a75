package action

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// newManifests returns manifests of which none is known.
func newManifests(api *reloadtest.JobAPI) manifests {
	return manifests{
		writer: writer{client: api, slots: inflight.New(inflight.Options{}, func(workload.Key) {})},
		store:  jobrun.Store{Namespace: "pod-reloader", Installation: "pod-reloader", Keys: annotation.DefaultKeys()},
		gather: gather.Gatherer{APIReader: api}, known: &state.Recreations{},
	}
}

// addManifest stores a manifest of the Job of a fixture, whose namespace has a ConfigMap with the UID uid-2. One step fails.
func addManifest(t *testing.T, step string, err error) (*reloadtest.JobFixture, manifests, *unstructured.Unstructured, error) {
	t.Helper()
	j := reloadtest.NewJobFixture(t, nil, nil)
	j.API.NewRootCA()
	j.API.Before = failing(step, err)
	m, job := newManifests(j.API), jobrun.Job{Object: workload.Object{Raw: j.Stored().Object}}
	manifest := jobrun.Manifest{
		Job: job.Replacement(j.Reader.Keys), UID: job.UID(), Reload: record.LastReload{Time: j.Now, Cause: record.CauseConfigChange},
	}
	secret, err := m.add(t.Context(), gather.Subject{Key: reloadtest.JobKey}, manifest)
	return j, m, secret, err
}

// A manifest that may be stored is completed or dropped by the next attempt. Where its creation was refused, there is none. Where the
// ConfigMap cannot be read for good, the Job is created again all the same.
func TestManifestThatMayBeStoredIsKnown(t *testing.T) {
	t.Parallel()
	lost, absent := errors.New("the connection is lost"), apierrors.NewNotFound(reloadtest.Resource("ConfigMap"), "")
	another := apierrors.NewAlreadyExists(reloadtest.Resource("Secret"), "")
	for name, tc := range map[string]struct {
		step         string
		err          error
		fails, known bool
		rootCA       string
	}{
		"stored":                         {known: true, rootCA: "uid-2"},
		"stored by another leader":       {step: "create Secret", err: another, fails: true, known: true},
		"no answer":                      {step: "create Secret", err: lost, fails: true, known: true},
		"an error of the server":         {step: "create Secret", err: apierrors.NewInternalError(lost), fails: true, known: true},
		"refused":                        {step: "create Secret", err: forbidden("Secret"), fails: true},
		"no permission on the ConfigMap": {step: "get ConfigMap", err: forbidden("ConfigMap"), known: true},
		"there is no ConfigMap":          {step: "get ConfigMap", err: absent, known: true},
		"no answer about the ConfigMap":  {step: "get ConfigMap", err: lost, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m, _, err := addManifest(t, tc.step, tc.err)
			assert.Equal(t, tc.fails, err != nil)
			known := m.known.First(reloadtest.JobKey)
			assert.Equal(t, tc.known, known != "")
			r, found, err := m.read(t.Context(), reloadtest.JobKey, "pod-reloader-job-uid-1")
			require.NoError(t, err)
			assert.Equal(t, !tc.fails, found)
			assert.Equal(t, tc.rootCA, r.manifest.RootCA)
		})
	}
}

// Another leader may have deleted the Secret, or have stored one of its own under the name since.
func TestManifestIsKnownUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		kept bool
	}{
		"deleted":                {},
		"gone":                   {err: apierrors.NewNotFound(reloadtest.Resource("Secret"), "manifest")},
		"another one":            {err: apierrors.NewConflict(reloadtest.Resource("Secret"), "manifest", errors.New("the UID differs"))},
		"denied by a webhook":    {err: deniedBy(metav1.Status{Code: http.StatusConflict, Message: "locked"}), kept: true},
		"the connection is lost": {err: errors.New("the connection is lost"), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, m, secret, err := addManifest(t, "", nil)
			require.NoError(t, err)
			j.API.Before = failing("delete Secret", tc.err)
			assert.Equal(t, tc.kept, m.end(t.Context(), gather.Subject{Key: reloadtest.JobKey}, secret) != nil)
			assert.Equal(t, tc.kept, m.known.First(reloadtest.JobKey) != "")
		})
	}
}

// The manifests of a namespace, left ones included, are limited in number: they are in the namespace of the installation.
func TestManifestsOfANamespaceAreLimited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespace           string
		manifests           int
		left, gone, refused bool
	}{
		"as many as a namespace may have": {namespace: "shop", manifests: manifestsOfNamespace, gone: true, refused: true},
		"one less":                        {namespace: "shop", manifests: manifestsOfNamespace - 1},
		"those of another namespace":      {namespace: "other", manifests: manifestsOfNamespace},
		"left":                            {namespace: "shop", manifests: manifestsOfNamespace, left: true, refused: true},
		"left, and gone since":            {namespace: "shop", manifests: manifestsOfNamespace + 1, left: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &reloadtest.JobAPI{Objects: map[string]*unstructured.Unstructured{}}
			m := newManifests(api)
			for n := range tc.manifests {
				key, secret := workload.Key{Namespace: tc.namespace, Name: fmt.Sprint(n)}, fmt.Sprint("left-", n)
				m.known.Add(key, secret)
				if tc.left {
					m.known.Leave(key, secret)
				}
				if !tc.gone {
					api.Store(&unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": secret, "namespace": m.store.Namespace},
					}})
				}
			}
			assert.Equal(t, tc.refused, m.limit(t.Context(), "shop") != nil)
		})
	}
}

func TestJobWaitsWhileItsNamespaceHasManyManifests(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	actions := j.leader()
	for n := range manifestsOfNamespace {
		actions.state.Recreations.Add(workload.Key{Namespace: "shop", Name: fmt.Sprint(n)}, "manifest")
	}
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter)
	assert.Empty(t, j.Writes(), "no Secret is created, and no Job deleted")
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecreationPostponed: the Job keeps the configuration")
}
