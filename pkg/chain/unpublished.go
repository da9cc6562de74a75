package chain

import (
	"cmp"
	"errors"
	"hash/fnv"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/backoff"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// writeAgain is when a write that has failed is repeated, changedAgain where another write of the object came before it: mostly the
	// watch has delivered that soon. Each further time waits twice as long: up to longestRefused where the API server or a webhook refuses
	// the write, up to longestFailed otherwise.
	writeAgain, changedAgain      = 10 * time.Second, 200 * time.Millisecond
	longestFailed, longestRefused = time.Minute, 5 * time.Minute
	// reportWait is how long the next attempt waits at least where a failure is reported: the third one. A refusal is reported at once, but a
	// missing permission once it lasts.
	reportWait = 4 * writeAgain
	// reportAgain is when a failure that lasts is reported again: the API server keeps Events for an hour by default.
	reportAgain = time.Hour
	// maxReported is how many objects of a namespace are reported at a time: a policy can refuse all of them.
	maxReported = 10
)

// EventPublishFailed is the reason of the Event on a custom resource whose digest cannot be written into it.
const EventPublishFailed = "PublishFailed"

// Unpublished is a digest that cannot be written.
type Unpublished struct {
	// Object has the kind, the namespace, the name and the uid of the custom resource alone.
	Object *unstructured.Unstructured
	// Annotation is the key of the digest.
	Annotation string
	// Err is what the API server answered, and Remedy what to do.
	Err    error
	Remedy string
	// More says that further objects of the namespace are not reported.
	More bool
}

// unpublished are the digests that could not be written. Only count may be used by several goroutines.
type unpublished struct {
	failures map[referent.Key]*failure
	// reported counts the failures of a namespace that are reported.
	reported map[string]int
	count    atomic.Int64
}

// failure is a digest that could not be written. While it waits, only another digest is.
type failure struct {
	value string
	times int
	// last is when it failed last.
	last time.Time
	// unauthorized is since when a permission is missing, or the credentials are not accepted; zero where the last failure was another one.
	unauthorized time.Time
	// due is when it is written again; zero if it does not wait.
	due time.Time
	// reported is when it was reported last; zero if it was not.
	reported time.Time
}

// failed adds a failure, and returns how long the next attempt waits, and whether to report it. An attempt that waits already is
// replaced.
func (u *unpublished) failed(key referent.Key, value string, err error, now time.Time) (wait time.Duration, report bool) {
	f := u.of(key)
	if f.value != value {
		f.value, f.times = value, 0
	}
	f.times++
	f.last = now
	wait = writeDelay(key, f.times, err)
	f.due = now.Add(wait)
	f.observe(err, now)
	news := (isRefused(err) || wait >= reportWait) && !f.mayBeStart(now)
	return wait, news && u.report(f, key.Namespace, now)
}

// waitsForKeys adds a failure of an object whose next attempt follows a read of the digest keys, and returns whether to report it, if it may
// be reported yet.
func (u *unpublished) waitsForKeys(key referent.Key, mayReport bool, now time.Time) (report bool) {
	f := u.of(key)
	f.last, f.due = now, time.Time{}
	return mayReport && u.report(f, key.Namespace, now)
}

// of returns the failure of an object, which is new if there is none.
func (u *unpublished) of(key referent.Key) *failure {
	if u.failures == nil {
		u.failures, u.reported = map[referent.Key]*failure{}, map[string]int{}
	}
	f, ok := u.failures[key]
	if !ok {
		f = &failure{}
		u.failures[key] = f
		u.count.Store(int64(len(u.failures)))
	}
	return f
}

// observe records since when a permission is missing.
func (f *failure) observe(err error, now time.Time) {
	switch {
	case !apianswer.Unauthorized(err):
		f.unauthorized = time.Time{}
	case f.unauthorized.IsZero():
		f.unauthorized = now
	}
}

// mayBeStart reports whether the API server may refuse the write because it has just started.
func (f *failure) mayBeStart(now time.Time) bool {
	return !f.unauthorized.IsZero() && apianswer.MayBeStart(now.Sub(f.unauthorized))
}

// report reports whether a failure is to be reported now, and records that.
func (u *unpublished) report(f *failure, namespace string, now time.Time) bool {
	switch {
	case f.reported.IsZero() && u.full(namespace), !f.reported.IsZero() && now.Sub(f.reported) < reportAgain:
		return false
	case f.reported.IsZero():
		u.reported[namespace]++
	}
	f.reported = now
	return true
}

// waits reports whether an attempt to write a digest has to wait.
func (u *unpublished) waits(key referent.Key, value string) bool {
	f, ok := u.failures[key]
	return ok && !f.due.IsZero() && f.value == value
}

// ready ends the wait of an object, if it is due at that time still, and reports whether it was.
func (u *unpublished) ready(key referent.Key, due time.Time) bool {
	f, ok := u.failures[key]
	if !ok || !f.due.Equal(due) {
		return false
	}
	f.due = time.Time{}
	return true
}

// compare orders objects for their next write: what has just failed comes last, so that it keeps nothing else waiting.
func (u *unpublished) compare(a, b referent.Key) int {
	return cmp.Or(u.last(a).Compare(u.last(b)), a.Compare(b))
}

// last is when the write of an object failed last; zero if it has not.
func (u *unpublished) last(key referent.Key) time.Time {
	if f, ok := u.failures[key]; ok {
		return f.last
	}
	return time.Time{}
}

func (u *unpublished) has(key referent.Key) bool { return u.failures[key] != nil }

// forget removes the failure of an object, and returns whether it was reported.
func (u *unpublished) forget(key referent.Key) (reported bool) {
	f, ok := u.failures[key]
	if !ok {
		return false
	}
	delete(u.failures, key)
	u.count.Store(int64(len(u.failures)))
	if !f.reported.IsZero() {
		if u.reported[key.Namespace]--; u.reported[key.Namespace] == 0 {
			delete(u.reported, key.Namespace)
		}
	}
	return !f.reported.IsZero()
}

// forgetAll removes the failures of a namespace.
func (u *unpublished) forgetAll(namespace string) {
	for key := range u.failures {
		if key.Namespace == namespace {
			u.forget(key)
		}
	}
}

// full reports whether no further object of a namespace is reported.
func (u *unpublished) full(namespace string) bool { return u.reported[namespace] >= maxReported }

func (u *unpublished) clear() {
	clear(u.failures)
	clear(u.reported)
	u.count.Store(0)
}

// writeDelay is how long a write waits that has failed so often, the last time with err. Up to an eighth is added, which the object
// determines: objects that were refused together are not repeated together.
func writeDelay(key referent.Key, times int, err error) time.Duration {
	first, longest := writeAgain, longestFailed
	switch {
	case isRefused(err):
		longest = longestRefused
	case apierrors.IsConflict(err):
		first = changedAgain
	}
	wait := backoff.Doubled(first, longest, times-1)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key.Namespace + "/" + key.String())) // it never fails
	return wait + wait*time.Duration(sum.Sum32()%1024)/8192
}

// errNotStored is the answer to a write that was accepted and changed. Where nothing is left of it, the object does not change, so that no
// event shows it.
var errNotStored = errors.New("the API server accepted the write and stored something else: a mutating webhook or policy removes or replaces " +
	"the annotation, or another field manager keeps it")

// isRefused reports whether the API server, an admission policy or a webhook refuses a write, and will again.
func isRefused(err error) bool {
	if errors.Is(err, errNotStored) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusNotFound, http.StatusConflict:
		return apianswer.Denied(err)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// written is the end of a write.
type written struct {
	publication

	err error
}

// finish takes in which writes have ended.
func (u *publisher) finish(all []written) {
	for _, w := range all {
		if now, ok := u.graphState.schema.Resource(w.key.GroupResource()); u.leads == nil || !ok || now != w.resource {
			continue // it is of an earlier leadership, or of an earlier configuration
		}
		if w.err == nil {
			u.succeeded(w.key)
			continue
		}
		now := u.now()
		wait, report := u.unpublished.failed(w.key, w.value, w.err, now)
		if report {
			u.report(w)
		}
		failed := again{[]referent.Key{w.key}, now.Add(wait)}
		u.inbox.gatherAfter(wait, func(p *pending) { p.unpublished = append(p.unpublished, failed) })
	}
}

func (u *publisher) succeeded(key referent.Key) {
	if u.unpublished.forget(key) {
		u.log.Info("published a digest that was refused before", "namespace", key.Namespace, "referent", key.String())
	}
	if u.pace.wrote(key, u.now()) {
		u.log.Info("a digest changes again and again; it is published with pauses",
			"namespace", key.Namespace, "referent", key.String(),
			"remedy", "find what changes; of two installations that publish, neither may refer to an annotation of the other")
	}
}

func (u *publisher) report(w written) {
	u.log.Error(w.err, "cannot publish a digest; it is retried", "namespace", w.key.Namespace, "referent", w.key.String())
	bare := w.object.DeepCopy()
	bare.SetAnnotations(nil)
	for _, handler := range u.handlers {
		handler(Unpublished{
			Object: bare, Annotation: w.resource.Annotation, Err: w.err, Remedy: remedy(w.err), More: u.unpublished.full(w.key.Namespace),
		})
	}
}

// remedy is what to do about a digest that cannot be published.
func remedy(err error) string {
	if errors.Is(err, errKeysUnread) {
		return "Let its ServiceAccount read the Secret of the digest keys"
	}
	return "Let its ServiceAccount write the annotation, or remove publish: true from the configuration"
}
