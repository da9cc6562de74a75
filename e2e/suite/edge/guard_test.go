package edge_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// impersonated is a client with the account of the installation, whose requests are not in the audit log as those of the account.
func impersonated(t testing.TB, in *installation.Installation) client.Client {
	t.Helper()
	config, id := in.ControlPlane().Admin(), in.Identity()
	config.Impersonate = rest.ImpersonationConfig{UserName: id.User, Groups: id.Groups}
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

// guarded is a fixture for which the API server enforces the guard already.
func guarded(t testing.TB, in *installation.Installation) *fixture.Fixture {
	t.Helper()
	s := fixture.New(t, in)
	s.Deployment("probe", fixture.Uses{})
	as := impersonated(t, in)
	s.Await("the guard to be in effect", func() error {
		probe := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "probe"}}
		err := as.Patch(s.Context(), probe, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("a write is not refused: %w", err)
		}
		return nil
	})
	return s
}

// everyFeature uses the permissions of the components, and all else that a reload may write on a workload.
func everyFeature(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	callersAreRefused(t, s)
	features(t, s, "webhook")
	for _, strategy := range []string{"env-vars", "annotations"} {
		replace(t, s, installation.ReplicaOptions{Args: []string{"--reload-strategy=" + strategy}})
		writeByStrategy(t, s, strategy)
	}
	replace(t, s, installation.ReplicaOptions{
		Args: []string{"--reload-strategy=env-vars", "--webhook=false"}, Without: []string{"--webhook-client-ca", "--webhook-client-names"},
	})
	for _, replica := range s.Installation.Replicas() {
		s.Installation.Balancer().RemoveBackend(replica.Name())
	}
	features(t, s, "direct")
	writeByStrategy(t, s, "env-vars")
}

// replace replaces the replicas by one with other flags.
func replace(t *testing.T, s *fixture.Fixture, options installation.ReplicaOptions) {
	t.Helper()
	in := s.Installation
	for _, replica := range in.Replicas() {
		require.NoError(t, in.RemoveReplica(s.Patiently(), replica))
	}
	_, err := in.AddReplica(s.Patiently(), options)
	require.NoError(t, err)
}

// features has a Deployment paused and resumed, a CronJob run and its active Job replaced, a Job created again, and Rollouts
// stamped and restarted.
func features(t *testing.T, s *fixture.Fixture, name string) {
	t.Helper()
	uses := fixture.Uses{ConfigMaps: []string{name}, Annotations: map[string]string{fixture.ConfigMaps: "", fixture.ReloaderAuto: "true"}}
	s.ConfigMap(name, fixture.Data{"key": "1"})
	with := func(key, value string) fixture.Uses {
		more := uses
		more.Annotations = map[string]string{key: value}
		for k, v := range uses.Annotations {
			more.Annotations[k] = v
		}
		return more
	}
	pausing := s.Deployment(name+"-pausing", with("deployment."+fixture.Reloader+"pause-period", "2s"))
	cron := s.Manifest("CronJob", name+"-cron", uses)
	require.NoError(t, unstructured.SetNestedField(cron.Object, "Replace", "spec", "concurrencyPolicy"))
	s.CreatePromptly(cron)
	running := observe.Workload{Kind: "CronJob", Namespace: s.Namespace, Name: cron.GetName()}
	job := s.Manifest("Job", name+"-job", uses)
	s.CreatePromptly(job)
	again := observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: job.GetName()}
	rollouts := []*unstructured.Unstructured{
		rollout(s, name+"-stamped", uses), rollout(s, name+"-restarted", with(fixture.Reloader+"rollout-strategy", "restart")),
	}
	for _, w := range []observe.Workload{pausing, running, again} {
		s.AwaitAdopted(w, "configmap/"+name)
	}
	var run types.UID
	last := ""
	for _, value := range []string{"2", "3"} {
		s.SetConfigMap(name, "key", value)
		s.Await("the CronJob to run", func() (err error) { run, err = nextJob(s, running, run); return err })
		last = s.AwaitWorkload(pausing, "the end of the pause", func(o *unstructured.Unstructured) bool {
			_, since := o.GetAnnotations()["deployment."+fixture.Reloader+"paused-at"]
			reload := o.GetAnnotations()[fixture.LastReload]
			return reload != "" && reload != last && !since
		}).GetAnnotations()[fixture.LastReload]
		s.Settled()
	}
	s.AwaitChanges(pausing, 2, "it was stamped twice")
	s.AwaitEvent(pausing, "Resumed", "roll out")
	s.AwaitRecreated(again, job.GetUID())
	for _, r := range rollouts {
		s.Await("the reload of "+r.GetName(), func() error { return reloaded(s, r) })
	}
}

// nextJob returns the Job of a CronJob that is not being deleted; with an error, the one before, unless there is one, and it is another.
func nextJob(s *fixture.Fixture, of observe.Workload, before types.UID) (types.UID, error) {
	all := &batchv1.JobList{}
	if err := s.List(s.Context(), all, client.InNamespace(s.Namespace)); err != nil {
		return before, err
	}
	var jobs []types.UID
	for _, job := range all.Items {
		if owner := metav1.GetControllerOf(&job); owner != nil && owner.Name == of.Name && job.DeletionTimestamp == nil {
			jobs = append(jobs, job.UID)
		}
	}
	if len(jobs) != 1 || jobs[0] == before {
		return before, fmt.Errorf("it has the Jobs %v, and had %q", jobs, before)
	}
	return jobs[0], nil
}

// rollout creates one.
func rollout(s *fixture.Fixture, name string, uses fixture.Uses) *unstructured.Unstructured {
	s.Helper()
	object := s.Manifest("Deployment", name, uses)
	object.SetGroupVersionKind(fixture.WorkloadKind("Rollout"))
	s.CreatePromptly(object)
	s.Await("the adoption of "+name, func() error {
		if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if object.GetAnnotations()[fixture.ConfigRecord] == "" {
			return errors.New("it has no record")
		}
		return nil
	})
	return object.DeepCopy()
}

// reloaded is an error unless a Rollout has another template, or a time to restart at, than before.
func reloaded(s *fixture.Fixture, before *unstructured.Unstructured) error {
	now := before.DeepCopy()
	if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(before), now); err != nil {
		return err
	}
	at, _, _ := unstructured.NestedString(now.Object, "spec", "restartAt")
	if at == "" && fixture.TemplateAnnotations(now)[fixture.ConfigHash] == fixture.TemplateAnnotations(before)[fixture.ConfigHash] {
		return fmt.Errorf("it has %v", now.GetAnnotations())
	}
	return nil
}

// writeByStrategy has a reload write what a strategy of Reloader writes.
func writeByStrategy(t *testing.T, s *fixture.Fixture, strategy string) {
	t.Helper()
	name := fmt.Sprintf("%s-%d", strategy, time.Now().UnixNano())
	s.ConfigMap(name, fixture.Data{"key": "1"})
	w := s.Deployment(name, fixture.Uses{
		ConfigMaps: []string{name}, Annotations: map[string]string{fixture.ConfigMaps: "", fixture.ReloaderAuto: "true"},
	})
	s.AwaitAdopted(w, "configmap/"+name)
	s.SetConfigMap(name, "key", "2")
	s.AwaitWorkload(w, "what the strategy writes", func(o *unstructured.Unstructured) bool {
		_, names := fixture.Environment(o)
		return fixture.TemplateAnnotations(o)[fixture.ReloadedFrom] != "" || strings.Contains(fmt.Sprint(names), "STAKATER_")
	})
}

// callersAreRefused calls the webhook as a pod could, and finds that only the API server's certificate is accepted.
func callersAreRefused(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	cp := s.Installation.ControlPlane()
	for who, id := range map[string]*controlplane.Identity{"no certificate": nil, "another name": {User: "pod"}, "the API server's name": {User: "kube-apiserver"}} {
		config := &tls.Config{InsecureSkipVerify: true}
		if id != nil {
			minted, err := cp.Config(*id)
			require.NoError(t, err)
			pair, err := tls.X509KeyPair(minted.CertData, minted.KeyData)
			require.NoError(t, err)
			config.Certificates = []tls.Certificate{pair}
		}
		if id != nil && id.User == "pod" {
			require.ErrorContains(t, refusal(t, s.Installation.Replicas()[0].WebhookAddress, config), "certificate", who)
			continue
		}
		transport := &http.Transport{TLSClientConfig: config}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://"+s.Installation.Replicas()[0].WebhookAddress+"/mutate", strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := (&http.Client{Transport: transport}).Do(request)
		transport.CloseIdleConnections()
		require.NoError(t, err)
		assert.Equal(t, id == nil, response.StatusCode == http.StatusUnauthorized, "%s: %s", who, response.Status)
		require.NoError(t, response.Body.Close())
	}
}

// refusal connects and returns how the server ends the connection. Nothing is sent: a server that closes a connection on which
// something is unread resets it, and its reason may be lost.
func refusal(t *testing.T, address string, config *tls.Config) error {
	t.Helper()
	connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	_, err = connection.Read(make([]byte, 1))
	return err
}

// typesAreChecked finds that the API server, which knows the fields of each kind, has nothing to say about the expressions.
func typesAreChecked(s *fixture.Fixture) {
	s.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	s.Await("the expressions to be checked", func() error {
		if err := s.Client.Get(s.Context(), types.NamespacedName{Name: "pod-reloader-guard"}, policy); err != nil {
			return err
		}
		if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
			return errors.New("they are not")
		}
		return nil
	})
	assert.Empty(s, policy.Status.TypeChecking.ExpressionWarnings)
}

// guardRefuses tries, with the account and every permission on workloads, what pod-reloader never does. The same writes by an
// administrator are valid.
func guardRefuses(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	require.NoError(t, s.Installation.ControlPlane().Apply(t.Context(), controlplane.Grant("by-mistake", s.Installation.Identity(),
		`{apiGroups: ["", apps, batch, argoproj.io, apps.openshift.io, admissionregistration.k8s.io], resources: ["*"], verbs: ["*"]}`)))
	as := impersonated(t, s.Installation)
	s.Await("the permissions to be in effect", func() error {
		err := as.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "x"}}, client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return err
		}
		return nil
	})
	typesAreChecked(s)
	targets(s)
	for name, attempt := range attempts(s) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, attempt.write(s.Client), "the write is valid for an administrator")
			err := attempt.write(as)
			if attempt.refused == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, "ValidatingAdmissionPolicy 'pod-reloader-guard'")
			assert.ErrorContains(t, err, attempt.refused)
		})
	}
}
