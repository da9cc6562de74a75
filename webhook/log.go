package webhook

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Any pod that reaches the port can send texts of megabytes, and what is no review of an API server, as often as it likes. Lines about
// these must not replace all others in the log, which has a limit on each node.
const (
	// maxLogged is how many bytes of a text of a caller a line has. No name of an object is longer.
	maxLogged = 253
	// invalidAtOnce is how many lines about invalid requests are written at once. After them there is one in each invalidEvery.
	invalidAtOnce, invalidEvery = 10, time.Second
)

// invalidLog writes the lines about requests that no API server sends, and about those that others leave no time or no memory for. The
// metric counts all of them.
type invalidLog struct {
	// decided is for requests that were decoded, unread for those that could not be read: an admission.Webhook logs errors about these.
	decided, unread logr.Logger
	// malformed and busy are apart: the first come from other callers, the second may be writes of users.
	malformed, busy *rate.Sometimes
}

func newInvalidLog(to logr.Logger) invalidLog {
	sometimes := func() *rate.Sometimes { return &rate.Sometimes{First: invalidAtOnce, Interval: invalidEvery} }
	l := invalidLog{decided: to, unread: to, malformed: sometimes(), busy: sometimes()}
	if sink := to.GetSink(); sink != nil {
		l.unread = to.WithSink(shortErrors{sink, l})
	}
	return l
}

// next returns the logger for the next line about a decision, which may discard it.
func (l invalidLog) next(outcome string) logr.Logger {
	sometimes, log := l.malformed, logr.Discard()
	if outcome == outcomeBusy {
		sometimes = l.busy
	}
	sometimes.Do(func() { log = l.decided })
	return log
}

// logger returns what an admission.Webhook logs to. Without a request, it could not read one. With one, the usual values are left out: they
// cost an allocation each, and most requests are not worth a line. An admission.Webhook asks for the logger of a decoded request before it
// copies the request, and keeps the copy until the answer: only here can memory be given back.
func (l invalidLog) logger(_ logr.Logger, req *admission.Request) logr.Logger {
	if req == nil {
		return l.unread
	}
	dropUnused(&req.AdmissionRequest)
	return l.decided
}

// shortErrors writes some errors, and shortens them: they may quote the request.
type shortErrors struct {
	logr.LogSink

	log invalidLog
}

func (s shortErrors) Error(err error, message string, values ...any) {
	sometimes := s.log.malformed
	if errors.Is(err, errBusy) {
		sometimes = s.log.busy
	}
	if err != nil {
		err = errors.New(reference.Cut(err.Error(), maxLogged))
	}
	sometimes.Do(func() { s.LogSink.Error(err, message, values...) })
}

// identified adds what a request is about.
func identified(log logr.Logger, req *admissionv1.AdmissionRequest) logr.Logger {
	short := func(text string) string { return reference.Cut(text, maxLogged) }
	key := workload.Key{Kind: short(workload.ID(schema.GroupVersionKind(req.Kind))), Namespace: short(req.Namespace), Name: short(req.Name)}
	return log.WithValues("operation", short(string(req.Operation)), "workload", key.String())
}
