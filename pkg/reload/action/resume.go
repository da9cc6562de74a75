package action

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// errMayNotList says that the permission to list the manifests is missing.
var errMayNotList = errors.New("pod-reloader may not list Secrets there")

// resume is Actions.ResumeRecreations. What was begun is completed where Jobs are not followed any more, too: the Job is deleted.
func (c recreations) resume(ctx context.Context) {
	if c.jobs.Store.Namespace == "" {
		return
	}
	pause := listwatch.SlowBackoff() // until the manifests are listed, no Job is created again
	failed := ""
	for {
		keys, err := c.list(ctx)
		if err == nil {
			c.state.Recreations.Listed()
			c.queue.Add(queue.Workload, keys...)
			return
		}
		if !c.jobs.Follow && mayNotList(err) { // the permission may be left out then, and mostly no Job is to be created again
			c.log.Info("cannot list the Jobs that are to be created again", "namespace", c.jobs.Store.Namespace, "error", err.Error(), "remedy", c.byHand())
			return
		}
		if text := err.Error(); text != failed && ctx.Err() == nil {
			failed = text
			c.logUnlisted(err)
		}
		if !listwatch.Sleep(ctx, pause.Step()) {
			return
		}
	}
}

// byHand is how a user completes what was begun.
func (c recreations) byHand() string {
	return "create each Job from job.json of its Secret, and delete the Secret: kubectl get secrets --namespace " +
		c.jobs.Store.Namespace + " --selector " + c.jobs.Store.Selector()
}

func mayNotList(err error) bool { return errors.Is(err, errMayNotList) || apierrors.IsForbidden(err) }

// logUnlisted logs why the manifests are not listed.
func (c recreations) logUnlisted(err error) {
	if errors.Is(err, errMayNotList) {
		c.log.Info("no Job is created again: there is no permission to list the manifests", "namespace", c.jobs.Store.Namespace,
			"remedy", "if a Job is missing that was to be created again before, "+c.byHand())
		return
	}
	c.log.Info("cannot list the Jobs that are to be created again; retrying", "namespace", c.jobs.Store.Namespace, "error", err.Error())
}

// manifestsAtOnce is how many Secrets with manifests are in memory at a time: each may have a megabyte.
const manifestsAtOnce = 4

// list records the Secrets with manifests, and returns their Jobs.
func (c recreations) list(ctx context.Context) ([]workload.Key, error) {
	if c.jobs.MayList != nil {
		if allowed, err := c.jobs.MayList(ctx); err == nil && !allowed { // without an answer, the list shows it
			return nil, errMayNotList
		}
	}
	label, value := c.jobs.Store.Label()
	var keys []workload.Key
	err := c.gather.List(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), manifestsAtOnce, func(secret unstructured.Unstructured) {
		m, err := c.jobs.Store.Decode(&secret)
		if err != nil {
			c.log.Error(err, "cannot read the manifest of a Job; the Secret is left", "secret", secret.GetName())
			return
		}
		key := workload.Key{Kind: workload.Job().ID(), Namespace: m.Job.GetNamespace(), Name: m.Job.GetName()}
		c.state.Recreations.Add(key, secret.GetName())
		keys = append(keys, key)
	}, client.InNamespace(c.jobs.Store.Namespace), client.MatchingLabels{label: value})
	if err != nil {
		return nil, err
	}
	return keys, nil
}
