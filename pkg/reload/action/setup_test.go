package action

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// newActions returns Actions of a process that leads, whose Events out gets.
func newActions(o Options, out report.Sender) *Actions {
	if o.Gather.Now == nil {
		o.Gather.Now = time.Now
	}
	leads := &queue.Leadership{}
	leads.Begin(o.Gather.Now().Add(-time.Minute))
	o.State, o.Backoff, o.Queue = &state.State{}, state.NewBackoff(), queue.New(leads, o.Gather.Now)
	o.Gather.Creations, o.Gather.Versions = &o.State.Creations, &o.State.Versions
	o.Events = report.New(report.Options{Out: out, Leads: leads, State: o.State, Now: o.Gather.Now})
	return New(o)
}

// countRemedies returns a context whose log counts the lines that say what a user has to do.
func countRemedies(t *testing.T) (ctx context.Context, remedies *int) {
	t.Helper()
	remedies = new(int)
	return log.IntoContext(t.Context(), funcr.New(func(_, args string) {
		if strings.Contains(args, `"remedy"=`) {
			*remedies++
		}
	}, funcr.Options{})), remedies
}

// bothDialects reads the annotations of SAP's pod-reloader and of Stakater's Reloader.
func bothDialects(t testing.TB) stamp.Reader {
	t.Helper()
	reader := reloadtest.Reader()
	reader.Dialects = append(reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	reader.Objects = func(string) (annotation.Objects, error) { return annotation.Unlisted{}, nil }
	return reader
}

// recordOf is the Record of a template with a hash, whose pods have configmap/app with another content.
func recordOf(ring digest.Ring, hash string) string {
	newest, _ := ring.Newest()
	return "v1:" + hash + ":" + string(newest.ID) + ":configmap/app=0123456789abcdef"
}

// absentApp returns what Actions gather where configmap/app does not exist.
func absentApp(t testing.TB, live client.Reader, ring digest.Ring, now time.Time) gather.Gatherer {
	t.Helper()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	return gather.Gatherer{
		Reader: reloadtest.Reader(), APIReader: live, Now: func() time.Time { return now }, Keys: &reloadtest.Keys{Present: ring},
		Store: &reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}},
	}
}

// deniedBy is the error of a write that an admission webhook denied with the Status of a request of its own, as controller-runtime does.
func deniedBy(status metav1.Status) error {
	status.Message = `admission webhook "w.example.com" denied the request: ` + status.Message
	return &apierrors.StatusError{ErrStatus: status}
}

// denialsByNotFound are the errors of writes that an admission webhook denied since it did not find what it looked up itself.
func denialsByNotFound() map[string]error {
	return map[string]error{
		"by code":   deniedBy(metav1.Status{Code: http.StatusNotFound, Message: "not in the cache"}),
		"by Status": deniedBy(apierrors.NewNotFound(corev1.Resource("namespaces"), "tenants").Status()),
	}
}
