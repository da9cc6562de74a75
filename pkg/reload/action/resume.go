package action

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// errMayNotList says that the permission to list the manifests is missing.
var errMayNotList = errors.New("pod-reloader may not list Secrets there")

// resumption continues what earlier leaders have begun.
type resumption struct {
	manifests

	jobs  Jobs
	queue *queue.Queue
	log   logr.Logger
}

// resume is Actions.ResumeRecreations. What was begun is completed where Jobs are not followed any more, too: the Job is deleted.
func (r resumption) resume(ctx context.Context) {
	if r.store.Namespace == "" {
		return
	}
	pause := listwatch.SlowBackoff() // until the manifests are listed, no Job is created again
	for failed := ""; ; {
		keys, err := r.list(ctx)
		switch {
		case err == nil:
			r.known.Listed()
			r.queue.Add(queue.Workload, keys...)
			return
		case !r.jobs.Follow && (errors.Is(err, errMayNotList) || apierrors.IsForbidden(err)):
			// The permission may be left out then, and mostly no Job is to be created again.
			r.log.Info("cannot list the Jobs that are to be created again", "namespace", r.store.Namespace, "error", err.Error(), "remedy", r.byHand())
			return
		case err.Error() == failed || ctx.Err() != nil:
		case errors.Is(err, errMayNotList):
			r.log.Info("no Job is created again: there is no permission to list the manifests", "namespace", r.store.Namespace,
				"remedy", "if a Job is missing that was to be created again before, "+r.byHand())
		default:
			r.log.Info("cannot list the Jobs that are to be created again; retrying", "namespace", r.store.Namespace, "error", err.Error())
		}
		failed = err.Error()
		if !listwatch.Sleep(ctx, pause.Step()) {
			return
		}
	}
}

// manifestsAtOnce is how many Secrets with manifests are in memory at a time: each may have a megabyte.
const manifestsAtOnce = 4

// list records the Secrets with manifests, and returns their Jobs.
func (r resumption) list(ctx context.Context) ([]workload.Key, error) {
	if r.jobs.MayList != nil {
		if allowed, err := r.jobs.MayList(ctx); err == nil && !allowed { // without an answer, the list shows it
			return nil, errMayNotList
		}
	}
	label, value := r.store.Label()
	var keys []workload.Key
	err := r.gather.List(ctx, secretKind, manifestsAtOnce, func(secret unstructured.Unstructured) {
		m, err := r.store.Decode(&secret)
		if err != nil {
			r.log.Error(err, "cannot read the manifest of a Job; the Secret is left", "secret", secret.GetName())
			return
		}
		key := workload.Key{Kind: workload.Job().ID(), Namespace: m.Job.GetNamespace(), Name: m.Job.GetName()}
		r.known.Add(key, secret.GetName())
		keys = append(keys, key)
	}, client.InNamespace(r.store.Namespace), client.MatchingLabels{label: value})
	return keys, err
}
