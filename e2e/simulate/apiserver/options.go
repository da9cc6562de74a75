package apiserver

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Options configure a Server. The zero value is a server without webhooks and faults that allows everything.
type Options struct {
	// Client returns the name of the client that sent a request; nil means the first word of the user agent. The name is
	// also the user name that webhooks see.
	Client func(*http.Request) string
	// Gate decides what happens to a request. It is called on the request's goroutine before the request is served and may
	// block until ctx ends, which it does when the client gives up or the Server stops.
	Gate func(ctx context.Context, call *world.Call) Fate
	// Authorize returns nil if the call is allowed, else the answer. It is also asked for access reviews: then the Call has
	// no Number, and Client is the user that the review names.
	Authorize func(call *world.Call) *metav1.Status
	// Webhooks are called in this order; see also Server.SetWebhooks.
	Webhooks []Webhook
	// OnCommit is called for every stored change, in the order of the versions and under the lock of the store: it must
	// neither block nor call the Server. A change of an Event is reported once, under the API through which it came.
	OnCommit func(world.Commit)
	// OnReply is called once for each request that is not a watch, when its answer is known. A dropped or hanging request
	// has none.
	OnReply func(world.Reply)
	// OnWatch is called when a watch opens, before its first event, on the request's goroutine. It may call Hold.
	OnWatch func(*Watch)
	// TrackFields keeps metadata.managedFields of what requests write. Server-side apply works only with it.
	TrackFields bool
	// Graph serves world.GraphResources, too.
	Graph bool
	// NoStreamingLists refuses sendInitialEvents, as servers without the feature WatchList do.
	NoStreamingLists bool
}

// Fate is what happens to a request. The zero value serves it.
type Fate struct {
	// Refuse is the answer, instead of serving. With details.retryAfterSeconds, or code 429, it bears a Retry-After header.
	Refuse *metav1.Status
	// Hang never answers and does not serve, unless Short is set; the connection ends when the client gives up or the Server stops.
	Hang bool
	// Drop closes the connection without serving.
	Drop bool
	// Late serves the request also if the client has gone meanwhile: it was received, and only the answer is lost.
	Late bool
	// Lose serves the request and closes the connection instead of answering. A watch is served and cut before the first
	// byte.
	Lose bool
	// CutAfter closes the connection after that many bytes of the response body, of a watch too; 0 means never.
	CutAfter int
	// Short ends the answer to a list, a streaming one too, that many items early, as if that was all of it: its length fits. A list of fewer
	// items ends before the first, one without items within its metadata. With Hang, the connection stays open there. 0 means never.
	Short int
	// Lag is how many versions the server is behind. Reads with a resourceVersion and new watches start from that older
	// state, never from one older than asked for; reads and streaming lists without a resourceVersion are consistent. What
	// a watch has missed follows at once unless it is held. The first attempt of an update works on the older object, as
	// kube-apiserver does with its watch cache, and is repeated when that proves stale.
	Lag int64
	// Held has a watch deliver the state that it begins with, and then nothing until it is released: with Lag, a server that
	// stays behind.
	Held bool
}

// Webhook is a registered admission webhook.
type Webhook struct {
	// Config has the rules, selectors, conditions and policies; of ClientConfig nothing is used. A validating webhook has
	// the same form.
	Config admissionregistrationv1.MutatingWebhook
	// Validating webhooks are called after all mutating ones and after validation; they must not patch.
	Validating bool
	// Call sends the review and returns the response. The context ends with the webhook's timeout or the request. An
	// *apierrors.StatusError is an HTTP error of the webhook; any error is a failure, to which the failure policy applies.
	Call func(ctx context.Context, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error)
}
