package reload

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// failingJobs are watches of which that of Jobs fails.
type failingJobs struct{}

func (failingJobs) Failing(resource, _ string) bool { return resource == "jobs.batch" }

func (failingJobs) AnyFailing() bool { return true }

func (failingJobs) Discovered(watchhealth.Watch, error) {}

// jobMapper knows the resource of Jobs.
func jobMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(reloadtest.JobKind.GroupKind().WithVersion(reloadtest.JobKind.Version), meta.RESTScopeNamespace)
	return mapper
}
