package reloader_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// reloadersPermissions are those that Reloader's chart grants in the cluster.
func reloadersPermissions() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"list", "get", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "daemonsets", "statefulsets"}, Verbs: []string{"list", "get", "update", "patch"}},
		{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"list", "get"}},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete", "list", "get"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// permissions runs the program in the place of Reloader's image, with the account that Reloader's chart makes. It restarts nothing, says
// what is missing, and works as soon as that is granted.
func (w *where) permissions(t *testing.T) {
	home := w.home(t)
	id := controlplane.ServiceAccount(home.namespace, "reloader-reloader")
	grant := func(name string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		meta := metav1.ObjectMeta{Name: name + "-" + home.namespace}
		for _, object := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: id.User}},
			},
		} {
			require.NoError(t, home.Create(t.Context(), object))
			t.Cleanup(func() { assert.NoError(t, home.Delete(context.WithoutCancel(t.Context()), object)) })
		}
	}
	grant("reloader", reloadersPermissions()...)
	deployment := meeting{kind: "Deployment", on: anyChange}
	home.createObjects("web", deployment)
	require.NoError(t, home.Create(t.Context(), deployment.manifest(home.namespace, "web")))
	home.awaitWorkload("web", "to be older than the program", func(o *unstructured.Unstructured) bool {
		return time.Since(o.GetCreationTimestamp().Time) >= 2*time.Second // creation times have whole seconds
	})
	process := w.runAs(home, id, "--log-format=json", "--reload-strategy=env-vars")
	says := func(what ...string) {
		t.Helper()
		home.await(fmt.Sprintf("a line with %q", what), func() error {
			text, err := os.ReadFile(process.LogPath())
			require.NoError(t, err)
			for line := range strings.Lines(string(text)) {
				if fixture.ContainsAll(line, what) {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
	says("digest key", `cannot create resource \"secrets\"`, "grant create on Secrets in this namespace, or create the Secret")
	configMapTo("2")(home, "web")
	says("not allowed to watch; grant get, list and watch; retrying", "apps/v1/Deployment", "workloads")

	grant("missing",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "daemonsets", "statefulsets"}, Verbs: []string{"watch"}},
	)
	home.awaitWorkload("web", "the Record", func(o *unstructured.Unstructured) bool { return o.GetAnnotations()[fixture.ConfigRecord] != "" })
	home.untouched("web", deployment, "the change without a key has restarted nothing, and what is found with it is adopted")
	configMapTo("3")(home, "web")
	home.awaitReloads(map[string]meeting{"web": {kind: "Deployment", on: anyChange, reloads: true}})
}

// awaitWorkload waits until a condition on a Deployment holds.
func (b *bare) awaitWorkload(name, what string, holds func(*unstructured.Unstructured) bool) {
	b.Helper()
	b.await(what, func() error {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(fixture.WorkloadKind("Deployment"))
		if err := b.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, o); err != nil {
			return err
		}
		if !holds(o) {
			return fmt.Errorf("it has %v", o.GetAnnotations())
		}
		return nil
	})
}

// runAs runs the program everywhere, with the permissions of an account.
func (w *where) runAs(home *bare, id controlplane.Identity, args ...string) *controlplane.Process {
	home.Helper()
	kubeconfig := filepath.Join(home.TempDir(), "kubeconfig")
	require.NoError(home, w.cp.WriteKubeconfig(kubeconfig, id))
	_, process := w.runBy(home, kubeconfig, args...)
	return process
}
