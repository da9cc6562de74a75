package action

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
)

// replaceJobs deletes the active Jobs of a CronJob for a new one, which the API server must have accepted in a dry run: while it refuses that
// one, each attempt would delete the Job that the schedule has started since. It reports whether the new one exists already, and then
// deletes nothing.
func (r runs) replaceJobs(
	ctx context.Context, s *gather.Subject, job *unstructured.Unstructured, active []cronrun.ActiveJob,
) (made bool, err error) {
	switch err := r.create(ctx, *s, job.DeepCopy(), client.DryRunAll); {
	case apianswer.AlreadyExists(err):
		return true, nil
	case err != nil && !inconclusive(err):
		return false, fmt.Errorf("dry run of job %s: %w", job.GetName(), err)
	}
	return false, r.deleteJobs(ctx, s, active, job.GetName())
}

// inconclusive reports whether the error of a dry run leaves open whether an object can be created once others are deleted. They may be what
// fills a quota; where they are not, the schedule can start no Job either. And an admission webhook with side effects is called in no dry run.
func inconclusive(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") ||
		apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// deleteJobs deletes some Jobs with their pods before another one is made. One of the same name, which may be made meanwhile, is a
// conflict: the next attempt lists the Jobs again. An error names also the Job that is not made, so that it is another one for each reload.
func (r runs) deleteJobs(ctx context.Context, s *gather.Subject, active []cronrun.ActiveJob, before string) error {
	for _, job := range active {
		err := r.deleteJob(ctx, *s, job.Name, client.Preconditions{UID: &job.UID})
		if err != nil && !apianswer.NotFound(err) {
			return fmt.Errorf("delete job %s before job %s: %w", job.Name, before, err)
		}
	}
	return nil
}
