package action

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// failure is an error with what follows from it.
type failure struct {
	// reason of the Warning Event on the workload.
	reason string
	err    error
	// soon means that it may pass by itself.
	soon bool
	// refused means that a permission is missing, or the credentials are not accepted. It is no news until it lasts.
	refused bool
	// quiet means that the user can do nothing about it: no Event, unless it persists.
	quiet bool
	// conflict means that the webhook has read another configuration than the loop.
	conflict bool
	// overtaken means that another writer has changed the workload before the request was stored.
	overtaken bool
	// behind means that nothing is due by a live read: it is no news however long it lasts.
	behind bool
	// lasting means that the next success does not end it: the loop takes back what it has reported.
	lasting bool
	// stored means that the API server has stored a write of the attempt, whose event is no reason to try again earlier.
	stored bool
	// unstamped means that the webhook has answered that it made no stamp.
	unstamped bool
}

// The reasons of the Events about what fails for several kinds of workloads.
const (
	reasonReloadFailed   = "ReloadFailed"
	reasonAdoptionFailed = "AdoptionFailed"
	reasonForeignKey     = "ForeignDigestKey"
)

// notAccepted says that another Record is stored than the loop has written.
const notAccepted = "the webhook did not accept the config-record: it sees another state, has another digest key or other flags about what is tracked, " +
	"or another admission webhook or policy replaces the annotation"

// recordRemoved says that no Record is stored although the loop has written one, and what follows.
func recordRemoved(consequence string) string {
	return "the config-record is not stored: " + consequence +
		"; make the admission webhook or policy that removes it keep annotations that it does not own, " +
		"or see in the log of pod-reloader's webhook whether it could read the configuration"
}

// transientFailure is a failure that passes by itself: another write was faster, or the state has moved on.
func transientFailure(reason, text string) failure {
	return failure{reason: reason, soon: true, quiet: true, err: errors.New(text)}
}

// longestText bounds the texts that are kept and logged at each attempt: an admission webhook of others may answer with any text.
const longestText = 2000

// textOf returns the text of an error, shortened.
func textOf(err error) string { return reference.Cut(err.Error(), longestText) }

// text is that of the Event. It stays the same while the cause does: a conflict names another digest each time.
func (f failure) text() string {
	if f.conflict {
		return "the configuration keeps changing between the reload request and its verification by the webhook; the reload is retried"
	}
	text := textOf(f.err)
	if request, _, hangs := strings.Cut(text, errNoAnswer.Error()); hangs {
		return request + errNoAnswer.Error() // what follows differs
	}
	return text
}

// pace is how soon the attempt is repeated.
func (f failure) pace() state.Pace {
	switch {
	case f.conflict:
		return state.Conflict
	case f.overtaken:
		return state.Overtaken
	case f.refused, f.behind:
		return state.Refused
	case f.soon:
		return state.Soon
	default:
		return state.NeedsUser
	}
}

// failedWrite sorts a failed request for a workload of a kind: a lost race and an API server that is away pass by themselves, a denial
// does not. A path, or a resource, that is not found may stay so if the kind is a custom one: the cluster does not serve that version any
// more, of which the watch shows no deletion.
func failedWrite(kind workload.Kind, reason string, err error) failure {
	unserved := meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && !apianswer.NotFound(err)
	if unserved && strings.Contains(kind.Group, ".") {
		return failure{reason: reason, err: err}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return failure{reason: reason, err: err, soon: true, quiet: !errors.Is(err, errNoAnswer)}
	}
	code := status.Status().Code
	lost := (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && !apianswer.Denied(err)
	soon := lost || code == 429 || code >= 500
	return failure{reason: reason, err: err, soon: soon, quiet: lost, refused: apianswer.Unauthorized(err)}
}

// failedPin is failedWrite for a patch with tests. The API server answers a failed one like a malformed patch, without a
// word about which it was: another write was faster.
func failedPin(kind workload.Kind, reason string, err error) failure {
	f := failedWrite(kind, reason, err)
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) && !apianswer.Denied(err) && errors.As(err, &status) && nameless(status.Status().Details) {
		f.soon, f.quiet, f.overtaken, f.err = true, true, true, errOvertaken
	}
	return f
}

// isGone reports whether a patch that tests what it removes was refused because that is gone, or another writer's by now.
func isGone(kind workload.Kind, err error) bool {
	return apianswer.NotFound(err) || failedPin(kind, "", err).overtaken
}

// errOvertaken says why a write has no effect.
var errOvertaken = errors.New("another writer has changed the workload before the write was stored")

// nameless reports that an error is not about an object: what denies an object names it.
func nameless(details *metav1.StatusDetails) bool {
	return details == nil || details.Name == "" && details.Kind == "" && len(details.Causes) == 0
}

// unreadRefs are the config objects that could not be read, if that is what failed.
func unreadRefs(err error) []reference.Ref {
	var refs []reference.Ref
	for _, failed := range configstate.ReadErrors(err) {
		refs = append(refs, failed.Ref)
	}
	return refs
}

// notOfTheWorkload is the kind of what a request is about that is not the workload: what is not found there says nothing of its kind.
var notOfTheWorkload workload.Kind

// unreadable is a failed read of config objects. Nothing of the workload changes until they can be read.
func unreadable(err error) failure {
	f := failedWrite(notOfTheWorkload, "ConfigUnreadable", err)
	f.refused = f.refused || apierrors.IsForbidden(err) // a read passes no admission
	f.err = fmt.Errorf("the configuration cannot be read, so that nothing restarts: %w", err)
	return f
}

// Unreadable is the outcome where config objects could not be read.
func Unreadable(s gather.Subject, err error) Outcome { return failed{s, unreadable(err)} }

func foreignKey(id digest.KeyID) failure {
	return failure{reason: reasonForeignKey, err: fmt.Errorf(
		"this installation does not have the digest key %s of the config-record. "+
			"Another installation, or a rollback to before that key was lost, has overwritten the config-record of this one. "+
			"Let one installation handle the workload, or give both the same digest key Secret; after a rollback, remove the annotation", id)}
}
