package action

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// ResumeRecreations queues the Jobs that an earlier leader has deleted and not created again. It tries until it has listed them. This
// process must lead: a standby queues nothing.
func (a *Actions) ResumeRecreations(ctx context.Context) {
	if !a.jobs.Follow {
		return
	}
	pause := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: 5 * time.Minute, Jitter: 0.1}
	failed := ""
	for {
		keys, err := a.listRecreations(ctx)
		if err == nil {
			a.queue.Add(queue.Workload, keys...)
			return
		}
		if text := err.Error(); text != failed && ctx.Err() == nil {
			failed = text
			a.log.Info("Cannot list the Jobs that are to be created again; retrying", "namespace", a.jobs.Store.Namespace, "error", text)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.Step()):
		}
	}
}

// listRecreations records the Secrets with manifests, and returns their Jobs.
func (a *Actions) listRecreations(ctx context.Context) ([]workload.Key, error) {
	label, value := a.jobs.Store.Label()
	secrets, err := a.gather.List(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), client.InNamespace(a.jobs.Store.Namespace), client.MatchingLabels{label: value})
	if err != nil {
		return nil, err
	}
	var keys []workload.Key
	for _, secret := range secrets {
		m, err := a.jobs.Store.Decode(&secret)
		if err != nil {
			a.log.Error(err, "Cannot read the manifest of a Job; the Secret is left", "secret", secret.GetName())
			continue
		}
		key := workload.Key{Kind: jobKind().ID(), Namespace: m.Job.GetNamespace(), Name: m.Job.GetName()}
		a.state.Recreations.Add(key, secret.GetName())
		keys = append(keys, key)
	}
	return keys, nil
}
