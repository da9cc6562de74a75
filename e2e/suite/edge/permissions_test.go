package edge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// What the loop writes and which permissions it uses, according to the audit log of an installation to which everything happens
// that its permissions are for.
func TestWritesAndPermissionsOfAnInstallation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		components []string
		newFixture func(testing.TB, *installation.Installation) *fixture.Fixture
		// prepare comes before the installation, further after what every installation does, last after the judgement.
		prepare func(*testing.T, *controlplane.ControlPlane)
		further func(*testing.T, *fixture.Fixture)
		last    func(*testing.T, *fixture.Fixture)
	}{
		"Default": {newFixture: anywhere, last: configMapsOnly},
		"AllPermissionsGuarded": {
			components: []string{"run-cronjobs", "recreate-jobs", "argo-rollouts", "guard", "network-policy"}, newFixture: guarded,
			prepare: defineOthers, further: everyFeature, last: guardRefuses,
		},
		"Namespaced": {
			components: []string{"namespaced"},
			newFixture: func(t testing.TB, in *installation.Installation) *fixture.Fixture {
				t.Helper()
				return fixture.In(t, in, "my-app")
			},
			last: permissionsToWatchOneNamespaceAreWithdrawn,
		},
		"NamespaceSelectorAndSecureMetrics": {
			components: []string{"namespace-selector", "secure-metrics"}, newFixture: anywhere, further: scrapes,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := controlplane.Podless()
			user := controlplane.ServiceAccount("pod-reloader", "pod-reloader").User
			options.Audit.Bodies = []string{user}
			// Not every API server streams its lists; that is what the permission to list is for.
			options.Args = map[string][]string{controlplane.APIServer: {"--feature-gates=WatchList=false"}}
			// The certificate is needed by all: a call of the API server that is refused leads to direct writes, which fail here.
			options.WebhookClient = "kube-apiserver"
			cp := controlplane.New(t, options)
			if test.prepare != nil {
				test.prepare(t, cp)
			}
			in := installation.New(t, cp, installation.Options{
				Patient: true, LongLease: true, Args: []string{
					"--refractory=0s", "--settle=200ms", "--shutdown-grace-period=200ms",
					"--webhook-client-ca=" + cp.CAFile(), "--webhook-client-names=kube-apiserver",
				},
				Components: test.components,
			})
			require.Equal(t, user, in.Identity().User)
			s := test.newFixture(t, in)
			everything(t, s)
			if test.further != nil {
				test.further(t, s)
			}
			fixture.AssertNothingDenied(t, in)
			everyPermissionIsUsed(t, in, in.Objects())
			if test.last != nil {
				test.last(t, s)
			}
		})
	}
}

// defineOthers serves the kinds of workloads of other programs that the guard is about.
func defineOthers(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	fixture.ServeKind(t, cp, "Rollout")
	fixture.ServeKind(t, cp, "DeploymentConfig")
}

func anywhere(t testing.TB, in *installation.Installation) *fixture.Fixture {
	t.Helper()
	return fixture.New(t, in)
}

// everything happens to an installation: changes with and without the webhook, Events, questions, a restart.
func everything(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}})
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "by the webhook", workloads...)
	s.SetSecret("db", "key", "2")
	s.AwaitExactly(2, "by the webhook", workloads...)
	patches := workloadPatches(t, s)
	require.GreaterOrEqual(t, len(patches), 2*len(workloads), "the loop has poked each")
	leavesSpecAlone(t, patches)
	away(t, s, workloads)
	hold(s)
	why(t, s)
	require.NoError(t, s.Installation.RestartAll(s.Patiently()))
	s.Settled()
}

// leavesSpecAlone asserts that no write made while the webhook answered touches a spec. Where a write to a kind took nearly as long as
// the API server waits for the webhook, it may not have answered.
func leavesSpecAlone(t *testing.T, patches controlplane.Requests) {
	t.Helper()
	late := map[string]bool{}
	for _, r := range patches {
		late[r.Resource] = late[r.Resource] || len(controlplane.Requests{r}.Within(20*time.Second)) == 0
	}
	judged := patches.Where(func(r controlplane.Request) bool { return !late[r.Resource] })
	require.NotEmpty(t, judged, "for each kind, a write took 20 s")
	for _, r := range judged {
		assert.False(t, writesSpec(t, r), "while the webhook answers, the loop wrote the spec of %s: %s", r.Name, r.Body)
	}
}

// workloadPatches are the writes of the installation to the workloads of a fixture.
func workloadPatches(t *testing.T, s *fixture.Fixture) controlplane.Requests {
	t.Helper()
	requests, err := s.Installation.ControlPlane().Audit().All(t.Context())
	require.NoError(t, err)
	return requests.By(s.Installation.Identity().User).In(s.Namespace).Writes().Where(func(r controlplane.Request) bool {
		return slices.Contains([]string{"deployments", "statefulsets", "daemonsets", "cronjobs"}, r.Resource)
	})
}

// away takes the webhook away, and brings it back: what is due in the meantime the loop writes itself.
func away(t *testing.T, s *fixture.Fixture, workloads []observe.Workload) {
	t.Helper()
	in := s.Installation
	for _, replica := range in.Replicas() {
		in.Balancer().RemoveBackend(replica.Name())
	}
	require.NoError(s, in.Balancer().AwaitReady(s.Patiently(), 0))
	in.Balancer().Break()
	before := len(workloadPatches(t, s))
	s.SetConfigMap("app", "key", "3")
	for _, w := range workloads {
		s.AwaitChanges(w, 3, "no webhook answers: the loop writes the stamp itself")
		s.AwaitWorkload(w, "no request stays", noDummy)
	}
	direct := 0
	for _, r := range workloadPatches(t, s)[before:] {
		if r.Code < http.StatusMultipleChoices && writesSpec(t, r) {
			direct++
		}
	}
	assert.Equal(s, len(workloads), direct, "each was stamped by one direct write")

	for _, replica := range in.Replicas() {
		in.Balancer().AddProcess(replica.Process, replica.WebhookAddress, controlplane.URLReady(replica.HealthURL+"/readyz"))
	}
	require.NoError(s, in.Balancer().AwaitReady(s.Patiently(), len(in.Replicas())))
	s.AwaitExactly(3, "when the webhook is back nothing is done twice", workloads...)
}

// hold has the same Event reported again for one version of a workload, which its controller may still be writing: it is then
// a count on the one before.
func hold(s *fixture.Fixture) {
	s.Helper()
	s.Secret("one", fixture.Data{"key": "1"})
	w := s.Deployment("held", fixture.Uses{Secrets: []string{"one"}})
	s.Await("the second hold to be counted", func() error {
		require.NoError(s, s.Delete(s.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "one"}}))
		s.Settled()
		s.Secret("one", fixture.Data{"key": "1"})
		s.Settled()
		s.AwaitEvent(w, "ReloadHeld", "secret/one")
		for _, event := range s.Events(w) {
			if event.Reason == "ReloadHeld" && event.Series != nil {
				return nil
			}
		}
		return errors.New("each Event was for another version")
	})
}

// why runs the sub-command with the permissions of the installation, as `kubectl exec` into its pod does.
func why(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	in := s.Installation
	for of, want := range map[string]string{
		"deployment/web": "configmap/app", "statefulset/web": "configmap/app", "daemonset/web": "configmap/app", "cronjob/web": "configmap/app",
		"deployment/held": "ReloadHeld: reload held: new pods could not start: secret/one deleted",
	} {
		output, err := in.WhyAs(t.Context(), in.Identity(), of, "-n", s.Namespace)
		require.NoError(t, err)
		assert.Contains(t, output, want)
		others := strings.ReplaceAll(output, "Problem: not found in this namespace: secret/one;", "")
		assert.NotContains(t, others, "Problem:", "the installation's permissions are enough")
	}
}

// scrapes shows that metrics are for those who may get them.
func scrapes(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	cp := s.Installation.ControlPlane()
	require.NoError(t, cp.Apply(t.Context(), strings.ReplaceAll(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: scraper, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-reloader-metrics-reader}
subjects:
- {kind: ServiceAccount, name: scraper, namespace: NAMESPACE}
`, "NAMESPACE", s.Namespace)))
	token := func(name string) string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
		request := &authenticationv1.TokenRequest{}
		require.NoError(t, s.SubResource("token").Create(t.Context(), account, request))
		return request.Status.Token
	}
	for _, test := range []struct {
		who, token string
		code       int
	}{
		{"the scraper", token("scraper"), http.StatusOK},
		{"another service account", token("default"), http.StatusForbidden},
		{"a client with a bad token", "bad", http.StatusUnauthorized},
	} {
		s.Await(test.who+" to be answered", func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				strings.Replace(s.Installation.Replicas()[0].MetricsURL, "http://", "https://", 1), nil)
			if err != nil {
				return err
			}
			request.Header.Set("Authorization", "Bearer "+test.token)
			client := s.Trusting()
			defer client.CloseIdleConnections()
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != test.code {
				return fmt.Errorf("metrics for %s: %s", test.who, response.Status)
			}
			return nil
		})
	}
}

// everyPermissionIsUsed asserts that each verb on each resource that the manifests grant was used.
func everyPermissionIsUsed(t *testing.T, in *installation.Installation, objects []*unstructured.Unstructured) {
	t.Helper()
	requests, err := in.ControlPlane().Audit().All(t.Context())
	require.NoError(t, err)
	used := map[string]bool{}
	for _, r := range requests.By(in.Identity().User) {
		permission := r.Verb + " " + r.Group + "/" + r.Resource
		used[permission] = true
		used[permission+" in "+r.Namespace] = true
	}
	unused := map[string]string{
		"get /namespaces": "only while a watch fails: permissionsToWatchAreWithdrawn",
		"create events.k8s.io/events in pod-reloader": "only while a watch fails: permissionsToWatchAreWithdrawn",
		"patch events.k8s.io/events in pod-reloader":  "only while a watch fails: permissionsToWatchAreWithdrawn",
		"get apps/deployments in pod-reloader":        "only while a watch fails: permissionsToWatchOneNamespaceAreWithdrawn",
	}
	granted := 0
	for _, object := range objects {
		where := ""
		switch object.GetKind() {
		case "ClusterRole":
		case "Role":
			where = " in " + object.GetNamespace()
		default:
			continue
		}
		role := &rbacv1.ClusterRole{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
		for _, permission := range permissions(role) {
			granted++
			assert.True(t, used[permission+where] || unused[permission+where] != "", "%s %s grants %q, which is never used: take it away", object.GetKind(), object.GetName(), permission+where)
		}
	}
	assert.Greater(t, granted, 20, "the manifests' permissions were looked at")
}

// permissions lists what a role grants.
func permissions(role *rbacv1.ClusterRole) []string {
	var all []string
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, verb+" "+group+"/"+resource)
				}
			}
		}
	}
	return all
}

// One Secret may not be read. Its workload keeps its last good state and says why; all others work.
func secretThatMayNotBeRead(t *testing.T, in *installation.Installation) {
	t.Helper()
	s := fixture.New(t, in)
	user, heard := s.Warned()
	s.Secret("forbidden", fixture.Data{"key": "1"})
	s.Secret("allowed", fixture.Data{"key": "1"})
	poor := s.Deployment("poor", fixture.Uses{Secrets: []string{"forbidden", "allowed"}})
	rich := s.EveryKind("rich", fixture.Uses{Secrets: []string{"allowed"}})
	stamped := fixture.TemplateAnnotations(s.Get(poor))
	require.NotEmpty(t, stamped[fixture.ConfigHash])

	role, allowed := restrict(s, in)
	s.SetSecret("forbidden", "key", "2")
	s.SetSecret("allowed", "key", "2")
	s.AwaitExactly(1, "the Secret that it depends on may be read", rich...)
	event := s.AwaitEvent(poor, "ConfigUnreadable", "forbidden")
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
	releases := 0
	require.True(t, poll.Repeat(t, 5, fixture.LeftOut, func(int) bool {
		releases++
		heard.Take()
		return fixture.Promptly(func() {
			answer := user.MergeWorkload(poor, fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"release":"%d"}}}}}`, releases))
			assert.Equal(t, stamped, fixture.TemplateAnnotations(answer), "a write passes with the last good state")
		})
	}), "an attempt was conclusive")
	assert.Contains(t, strings.Join(heard.Take(), "\n"), "pod-reloader did not update the config-hash", "and with a warning")
	s.AwaitExactly(1, "the failures of another workload are nothing to it", rich...)
	s.RequireChanges(poor, releases, "only its user's releases")

	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	require.NoError(t, s.Update(t.Context(), role))
	s.Await("the permission to be back", func() error { return allowed("forbidden") })
	s.SetSecret("allowed", "key", "3")
	s.AwaitChanges(poor, releases+1, "the permission is back, and what was due is done")
}

// restrict takes the permission to get Secrets away, but for those named here; list and watch stay. It returns the role, and who
// asks the API server whether a Secret may be read.
func restrict(s *fixture.Fixture, in *installation.Installation) (role *rbacv1.ClusterRole, allowed func(secret string) error) {
	s.Helper()
	role = &rbacv1.ClusterRole{}
	require.NoError(s, s.Client.Get(s.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
	for n, rule := range role.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			role.Rules[n].Resources = []string{"configmaps"}
		}
	}
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: allowedSecrets()})
	require.NoError(s, s.Update(s.Context(), role))
	config, err := in.ControlPlane().Config(in.Identity())
	require.NoError(s, err)
	as, err := client.New(config, client.Options{})
	require.NoError(s, err)
	allowed = func(secret string) error {
		return as.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: secret}, &corev1.Secret{})
	}
	s.Await("the permission to be taken away", func() error {
		if allowed("forbidden") == nil {
			return errors.New("it is still there")
		}
		return allowed("allowed")
	})
	return role, allowed
}

// allowedSecrets are the ones that may still be read: the digest key, and what the barrier needs.
func allowedSecrets() []string {
	names := []string{"allowed", "pod-reloader-digest-key"}
	for n := range 100 {
		names = append(names, canaryName(n))
	}
	return names
}
