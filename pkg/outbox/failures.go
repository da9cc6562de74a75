package outbox

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logEvery is how often failed attempts are logged; the metric counts each one.
const logEvery = time.Minute

// failures counts failed attempts, and logs that there are some.
type failures struct {
	attempts *prometheus.CounterVec
	log      logr.Logger
	logged   rate.Sometimes
}

func newFailures(log logr.Logger) *failures {
	return &failures{log: log, logged: rate.Sometimes{Interval: logEvery}, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pod_reloader_event_write_failures_total",
		Help: "Failed attempts to write an Event, by HTTP status; none if there was no answer. They are retried.",
	}, []string{"code"})}
}

// add takes the error of an attempt to write an Event.
func (f *failures) add(err error, event *eventsv1.Event) {
	f.attempts.WithLabelValues(code(err)).Inc()
	f.logged.Do(func() {
		about := event.Regarding
		f.log.Info("cannot write an Event; retrying", "event", event.Reason, "kind", about.Kind, "namespace", about.Namespace, "name", about.Name,
			"error", err.Error())
	})
}

// code returns the HTTP status of an error as a label. A webhook may answer with any status: what is no status of HTTP counts as one label.
func code(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "none"
	}
	if code := int(status.Status().Code); http.StatusText(code) != "" {
		return strconv.Itoa(code)
	}
	return "other"
}
