package reloader_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// With Reloader's flags and nothing else, its scenarios go on as its users know them. Everything is changed right after it was created.
func bareProgramInPlaceOfReloader(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	anything := map[string]string{fixture.ReloaderAuto: "true"}
	listed := map[string]string{fixture.ReloaderConfigMaps: "NAME", fixture.ReloaderSecrets: "NAME"}
	marked := map[string]string{"reload": "true"}

	t.Run("annotations", func(t *testing.T) {
		t.Parallel()
		b := startBare(t, cp, "--log-format=json", "--reload-strategy=annotations")
		b.meet(each(map[string]meeting{
			"configmap": {on: listed, reloads: true}, "secret": {on: listed, act: changedSecret, reloads: true},
			"auto": {on: anything, reloads: true}, "pods-auto": {onPods: anything, reloads: true}, "pods-listed": {onPods: listed, reloads: true},
			"keys": {on: listed, pod: byKeys, act: changedSecret, reloads: true}, "projected": {on: anything, pod: byProjection, reloads: true},
			"init": {on: listed, pod: byInitContainer, reloads: true}, "init-volume": {on: anything, pod: byInitVolume, act: changedSecret, reloads: true},
			"unread":  {on: listed, pod: notAtAll, reloads: true},
			"pattern": {on: map[string]string{fixture.ReloaderConfigMaps: "other, NA.*, NAME.*"}, reloads: true},
			"search":  {on: map[string]string{"reloader.stakater.com/search": "true"}, of: map[string]string{"reloader.stakater.com/match": "true"}, reloads: true},

			"no-match": {on: map[string]string{"reloader.stakater.com/search": "true"}}, "no-search": {of: map[string]string{"reloader.stakater.com/match": "true"}},
			"labels": {on: anything, act: labelsOnly}, "false": {on: map[string]string{fixture.ReloaderAuto: "false"}}, "none": {},
			"ignored": {on: anything, of: map[string]string{"reloader.stakater.com/ignore": "true"}},
			"other":   {onPods: map[string]string{fixture.ReloaderConfigMaps: "NAME"}, act: changedSecret},
			"typed":   {on: map[string]string{"configmap.reloader.stakater.com/auto": "true"}, act: changedSecret},
			"exclude": {on: map[string]string{fixture.ReloaderAuto: "true", "configmaps.exclude.reloader.stakater.com/reload": "NAME"}},
			"created": {on: listed, pod: notAtAll, after: true}, "deleted": {on: listed, pod: notAtAll, act: deletion},
		}))
		before := b.wrote("Deployment", "deployment-auto")
		configMapTo("3")(b, "deployment-auto")
		b.await("another reload", func() error {
			if maps.Equal(before, b.wrote("Deployment", "deployment-auto")) {
				return errors.New("nothing has changed")
			}
			return nil
		})
	})
	t.Run("env-vars", func(t *testing.T) {
		t.Parallel()
		fixture.ServeKind(t, cp, "Rollout")
		fixture.ServeKind(t, cp, "DeploymentConfig")
		b := startBare(t, cp, "--reload-strategy=env-vars", "--is-Argo-Rollouts=true", "--is-openshift=true")
		all := each(map[string]meeting{
			"configmap": {on: listed, reloads: true}, "secret": {on: listed, act: changedSecret, reloads: true}, "labels": {on: listed, act: labelsOnly},
		})
		all["rollout"] = meeting{kind: "Rollout", on: named(listed, "rollout"), reloads: true}
		all["openshift"] = meeting{kind: "DeploymentConfig", on: anything, act: changedSecret, reloads: true}
		b.meet(all)
		assert.Len(t, b.wrote("Rollout", "rollout")["STAKATER_ROLLOUT_CONFIGMAP"], 40)
		assert.Len(t, b.wrote("DeploymentConfig", "openshift")["STAKATER_OPENSHIFT_SECRET"], 40)
		assert.Len(t, b.wrote("Deployment", "deployment-configmap")["STAKATER_DEPLOYMENT_CONFIGMAP_CONFIGMAP"], 40)
		assert.Len(t, b.wrote("Deployment", "deployment-secret")["STAKATER_DEPLOYMENT_SECRET_SECRET"], 40)
	})
	t.Run("created and deleted", func(t *testing.T) {
		t.Parallel()
		b := startBare(t, cp, "--reload-strategy=annotations", "--reload-on-create=true", "--reload-on-delete=true")
		b.meet(map[string]meeting{
			"created": {kind: "Deployment", on: named(listed, "created"), pod: notAtAll, after: true, reloads: true},
			"deleted": {kind: "Deployment", on: named(listed, "deleted"), pod: notAtAll, act: deletion, reloads: true},
			"needed":  {kind: "Deployment", on: named(listed, "needed"), act: deletion, reloads: true},
		})
	})
	t.Run("selected", func(t *testing.T) {
		t.Parallel()
		b := startBare(t, cp, "--reload-strategy=annotations", "--resource-label-selector=reload=true", "--resources-to-ignore=secrets", "--auto-reload-all=true")
		b.meet(map[string]meeting{
			"marked": {kind: "Deployment", labels: marked, reloads: true}, "plain": {kind: "Deployment", on: anything},
			"secret": {kind: "Deployment", labels: marked, act: changedSecret}, "off": {kind: "Deployment", labels: marked, on: map[string]string{fixture.ReloaderAuto: "false"}},
		})
	})
	t.Run("jobs", func(t *testing.T) {
		t.Parallel()
		b := startBare(t, cp, "--reload-strategy=annotations")
		for n := range 4 {
			b.runsAtOnce(fmt.Sprintf("cron-%d", n))
			b.createsAgain(fmt.Sprintf("job-%d", n))
		}
	})
	t.Run("pause", func(t *testing.T) {
		t.Parallel()
		startBare(t, cp, "--reload-strategy=annotations").pauses()
	})
	t.Run("rollout", func(t *testing.T) {
		t.Parallel()
		fixture.ServeKind(t, cp, "Rollout")
		startBare(t, cp, "--reload-strategy=annotations", "--is-Argo-Rollouts=true").restarts()
	})
	t.Run("deploymentconfig", func(t *testing.T) {
		t.Parallel()
		fixture.ServeKind(t, cp, "DeploymentConfig")
		b := startBare(t, cp, "--reload-strategy=annotations", "--is-openshift=true")
		b.meet(map[string]meeting{
			"listed": {kind: "DeploymentConfig", on: named(listed, "listed"), reloads: true}, "auto": {kind: "DeploymentConfig", on: anything, reloads: true},
			"pods": {kind: "DeploymentConfig", onPods: anything, act: changedSecret, reloads: true}, "labels": {kind: "DeploymentConfig", on: anything, act: labelsOnly},
		})
	})
}

// restarts changes the configuration of Rollouts right after their creation: the one asks for a new template, the other for a restart.
func (b *bare) restarts() {
	b.Helper()
	restart := map[string]string{fixture.ReloaderAuto: "true", "reloader.stakater.com/rollout-strategy": "restart"}
	b.meet(map[string]meeting{"template": {kind: "Rollout", on: map[string]string{fixture.ReloaderAuto: "true"}, reloads: true}, "restart": {kind: "Rollout", on: restart}})
	b.await("the restart", func() error {
		rollout := &unstructured.Unstructured{}
		rollout.SetGroupVersionKind(fixture.WorkloadKind("Rollout"))
		require.NoError(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: "restart"}, rollout))
		at, _, _ := unstructured.NestedString(rollout.Object, "spec", "restartAt")
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			return err
		}
		assert.Empty(b, b.wrote("Rollout", "restart"), "the template stays as it is")
		return nil
	})
}

// runsAtOnce changes the configuration of a CronJob right after its creation.
func (b *bare) runsAtOnce(name string) {
	b.Helper()
	m := meeting{kind: "CronJob", on: map[string]string{fixture.ReloaderConfigMaps: name}}
	b.createObjects(name, m)
	require.NoError(b, b.Create(b.Context(), m.manifest(b.namespace, name)))
	configMapTo("2")(b, name)
	b.await("a run of "+name, func() error {
		jobs := &batchv1.JobList{}
		require.NoError(b, b.List(b.Context(), jobs, client.InNamespace(b.namespace)))
		if !slices.ContainsFunc(jobs.Items, func(job batchv1.Job) bool {
			owner := metav1.GetControllerOf(&job)
			return owner != nil && owner.Name == name && job.Annotations["cronjob.kubernetes.io/instantiate"] != ""
		}) {
			return errors.New("there is no Job")
		}
		return nil
	})
}

// createsAgain does so with a Job.
func (b *bare) createsAgain(name string) {
	b.Helper()
	m := meeting{kind: "Job", on: map[string]string{fixture.ReloaderAuto: "true"}}
	b.createObjects(name, m)
	created := m.manifest(b.namespace, name)
	require.NoError(b, b.Create(b.Context(), created))
	changedSecret(b, name)
	b.await(name+" to be created again", func() error {
		job := &batchv1.Job{}
		if err := b.Get(b.Context(), client.ObjectKeyFromObject(created), job); err != nil {
			return err
		}
		if job.UID == created.GetUID() {
			return errors.New("it is the old one")
		}
		return nil
	})
}

func (b *bare) pauses() {
	b.Helper()
	on := map[string]string{fixture.ReloaderConfigMaps: "web", "deployment.reloader.stakater.com/pause-period": "2s"}
	b.meet(map[string]meeting{"web": {kind: "Deployment", on: on, reloads: true}})
	web := &unstructured.Unstructured{}
	web.SetGroupVersionKind(fixture.WorkloadKind("Deployment"))
	const pausedAt = "deployment.reloader.stakater.com/paused-at"
	began := time.Now()
	b.await("the end of the pause", func() error {
		require.NoError(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: "web"}, web))
		paused, _, _ := unstructured.NestedBool(web.Object, "spec", "paused")
		if at, marked := web.GetAnnotations()[pausedAt]; paused || marked {
			assert.Equal(b, paused, marked, "both or none")
			_, err := time.Parse(time.RFC3339, at)
			assert.NoError(b, err)
			return fmt.Errorf("it is paused since %s", time.Since(began))
		}
		return nil
	})
}
