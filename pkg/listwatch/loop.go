// Package listwatch follows the objects of one kind: it lists and watches them until its context ends, and hands over each one
// that comes, changes or goes.
//
// It belongs to the shell of the program. configstate, workloadstate, keyring and certs/rotate use it with requests, decoders and
// stores of their own; what they share is the client, client-go's reflector, the pauses after failures, the end of a list that
// stops coming, and the log lines. The transport of package watchhealth ends silent watches.
package listwatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Sink takes the objects. Its methods are called one at a time, and hold up the watch.
type Sink[Object any] interface {
	// Put takes an object that comes or changes.
	Put(object Object)
	// Remove takes an object that is gone.
	Remove(object Object)
	// Replace takes a listing as of a resourceVersion: what is not in it is gone.
	Replace(objects []Object, version string)
}

// Loop follows the objects of one kind. It runs once.
type Loop[Object runtime.Object] struct {
	// Name is that of the reflector in its log, Kind that of the objects.
	Name, Kind string
	// List and Watch make the requests. The reflector asks a watch for initial events where the server can stream them.
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	Sink  Sink[Object]
	// Failed is called for each failure to list or watch. Refused means that a permission is missing, or that the credentials are not
	// accepted; nil calls nothing.
	Failed func(err error, refused bool)
	Log    logr.Logger
	// What the objects are, as the value "watch" of the lines about failures; empty logs none. The same failure is logged once.
	What string

	// pace, as all that follows but refusal, is of Run's goroutine.
	pace pace
	// failure is the last error that was logged, forbidden since when requests are. listed, the time of a complete list, and opened say
	// what has succeeded since the last failure: it has ended when both have, since a permission can be missing for one of them.
	failure           string
	forbidden, listed time.Time
	opened            bool
	// heard is when the API server has last listed the objects or sent an event.
	heard time.Time
	// began is when the last watch was opened, or its initial list was complete; delivered says that it has sent an event of an object
	// since it was opened, and heardOf that it has sent anything. short counts the watches in a row that have ended at once without such
	// an event.
	began              time.Time
	delivered, heardOf bool
	short              int
	// refusal is that of a watch by the event that there are too many requests. The reflector does not report it.
	refusal atomic.Pointer[error]
}

// One makes the requests for one object by its name, as an RBAC rule with the name permits them.
func One(c cache.Getter, resource, namespace, name string) *cache.ListWatch {
	return cache.NewListWatchFromClient(c, resource, namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
}

// Run follows the objects until the context ends. A refusal or an outage is tried again for ever.
func (l *Loop[Object]) Run(ctx context.Context) {
	var expected Object
	between := backoff()
	source := &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
	reflector := cache.NewReflectorWithOptions(source, expected, &store[Object]{l}, cache.ReflectorOptions{
		Name: l.Name, TypeDescription: l.Kind, Backoff: &between,
	})
	// What the reflector logs on its way is of no interest but for debugging.
	quiet := klog.NewContext(ctx, l.Log.V(1))
	for more := true; more; {
		more = Sleep(ctx, l.over(ctx, reflector.ListAndWatchWithContext(quiet)))
	}
}

// over records how an attempt to list and watch has ended, unless the context has. It returns the pause until the next one.
func (l *Loop[Object]) over(ctx context.Context, err error) time.Duration {
	listed := !l.listed.IsZero()
	worked := listed && time.Since(l.listed) >= steady
	pause := l.pace.after(worked, isHopeless(err) || err != nil && listed && !l.heard.After(l.listed) || err == nil && l.isShort())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.failed(err)
	default:
		l.ended()
	}
	return pause
}

const (
	// atOnce is how soon a watch has to end to count as one that was only accepted.
	atOnce = time.Second
	// shortInARow is how many of these, one after another, are a failure. An update of a definition ends the watches of its resource, and
	// there may be two updates.
	shortInARow = 3
)

// errShort says that watches are accepted and do not last, whatever ends them. The reflector reports none of that: it lists again. One such
// watch is nothing special: the API server stops, or the version has expired.
var errShort = errors.New("its watches are accepted, but end at once without an event: what is between here and the API server may not support watches")

// ended counts watches that end at once, and reports those that do so again and again.
func (l *Loop[Object]) ended() {
	if !l.isShort() {
		l.short = 0
		return
	}
	if l.short++; l.short >= shortInARow {
		l.failed(errShort)
	}
}

// isShort reports whether the last watch has just begun, and sent no event of an object.
func (l *Loop[Object]) isShort() bool { return !l.delivered && time.Since(l.began) < atOnce }

// goesOn counts the last watch where the reflector continues it although it has ended at once: it has sent a bookmark, or there were too
// many requests. After the third bookmark in a row, the reflector must not open another one without a pause.
func (l *Loop[Object]) goesOn() error {
	refusal := l.refusal.Swap(nil)
	switch {
	case refusal != nil:
		l.short++
		l.interrupted(*refusal)
	case !l.heardOf:
	case !l.isShort():
		l.short = 0
	default:
		if l.short++; l.short >= shortInARow {
			l.heardOf = false
			return errShort
		}
	}
	l.heardOf = false
	return nil
}

// busy keeps a refusal for the next request of the reflector.
func (l *Loop[Object]) busy(err error) { l.refusal.Store(&err) }

// list fails without a request after a streaming list with too many of them: the reflector lists instead.
func (l *Loop[Object]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if refusal := l.refusal.Swap(nil); refusal != nil {
		return nil, *refusal // Run retries
	}
	return l.List(ctx, options)
}

func (l *Loop[Object]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	open := l.continueWatch
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		open = l.streamList
	}
	w, err := open(ctx, options)
	switch {
	case utilnet.IsConnectionRefused(err):
		return nil, final{err} // Run retries; the reflector would go on at its version, which may be one of another history
	case apierrors.IsTooManyRequests(err):
		l.interrupted(err)
		return nil, err
	case err != nil:
		return nil, err
	}
	l.opened, l.began, l.delivered, l.heardOf = true, time.Now(), false, false
	l.recovered()
	return w, nil
}

// quiet is after how long without an event a watch may be ahead of the API server, which sends a bookmark about every minute.
const quiet = 90 * time.Second

// errRestored says that the API server is behind the version at which a watch continues: its storage was restored from a backup. It
// would accept the watch, deliver nothing until it has reached that version again, and never deliver what was written before. Where it has
// reached that version already, nothing shows the restore: only refused connections, after which everything is listed again.
var errRestored = errors.New("the API server has an older state than was watched, as after the restore of a backup: listing again")

// continueWatch opens a watch at a version. After a silence, it first looks whether the API server has that version. That costs a list of
// one object. To list all of them would be expensive where an API server sends no bookmarks, and would hide that a watch is silent.
func (l *Loop[Object]) continueWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := l.goesOn(); err != nil {
		return nil, err
	}
	if time.Since(l.heard) > quiet {
		list, err := l.List(ctx, metav1.ListOptions{Limit: 1})
		if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
			return nil, err // a busy API server is asked again
		}
		if err == nil && isBehind(list, options.ResourceVersion) {
			return nil, errRestored // the reflector lists again
		}
	}
	w, err := l.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return newChecked(w, false, false, l.busy), nil
}

// isBehind reports whether a list is of an earlier state than a version. Where the two have no order, nothing is known.
func isBehind(list runtime.Object, version string) bool {
	of, err := meta.ListAccessor(list)
	return err == nil && reference.Later(version, of.GetResourceVersion())
}

// streamList opens a streaming list. The reflector would retry a 429, a refused connection and an expired version by itself, without an
// end: it would not report the failure, nor see the end of the context while it pauses. After an expired version it would not even pause.
func (l *Loop[Object]) streamList(ctx context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
	ended := Pause().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if w, err = l.Watch(ctx, options); !apierrors.IsTooManyRequests(err) {
			return true, nil
		}
		l.failed(err)
		return false, nil // the reflector would list, which takes more of an API server that is busy
	})
	switch {
	case ended != nil:
		return nil, ended
	case isExpired(err) && !canExpire(options):
		return nil, final{err} // the reflector lists
	case err != nil:
		return nil, err
	}
	return newChecked(w, true, canExpire(options), l.busy), nil
}

// isExpired is the condition on which the reflector opens a streaming list again at once, at no version.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// canExpire reports whether a request names a version. An answer that the version has expired is one of an API server only if it does.
func canExpire(options metav1.ListOptions) bool {
	return options.ResourceVersion != "" && options.ResourceVersion != "0"
}

// failed reports an error after which the objects are listed again.
func (l *Loop[Object]) failed(err error) {
	l.listed, l.opened = time.Time{}, false
	l.report(err)
}

// interrupted reports an error after which the reflector opens the watch again by itself, for as long as it takes: it goes on where it was,
// and lists nothing.
func (l *Loop[Object]) interrupted(err error) {
	l.opened = false
	l.report(err)
}

// report passes an error on, and logs it when it is another one than last time. That a permission is missing is known once the refusal
// lasts.
func (l *Loop[Object]) report(err error) {
	forbidden := apierrors.IsForbidden(err)
	if l.Failed != nil {
		l.Failed(err, forbidden || apierrors.IsUnauthorized(err))
	}
	missing := Lasts(&l.forbidden, forbidden)
	failure := fmt.Sprint(missing, Cause(err))
	if failure == l.failure || l.What == "" {
		return
	}
	l.failure = failure
	if missing {
		l.Log.Error(err, "not allowed to watch; grant get, list and watch; retrying", "watch", l.What)
		return
	}
	l.Log.Error(err, "cannot watch; retrying", "watch", l.What)
}

// final is an error that the reflector must not see: it would retry the request by itself.
type final struct{ error }

// Cause is the text of an error without what is another one in each attempt: the URL that was asked, as the reflector gives each attempt
// another time limit, the address, as a host can have several, and the port of our end of the connection.
func Cause(err error) string {
	if hidden, ok := errors.AsType[final](err); ok {
		err = hidden.error
	}
	if asked, ok := errors.AsType[*url.Error](err); ok {
		err = asked.Err
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok { // its text can have that of another connection
		return fmt.Sprintf("lookup %s: not found %t, time-out %t", lookup.Name, lookup.IsNotFound, lookup.IsTimeout)
	}
	if connection, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Sprintf("%s %s: %v", connection.Op, connection.Net, connection.Err)
	}
	return err.Error()
}

// IsNewCause reports whether an attempt has failed in another way than the last one, whose cause is kept: the same failure is logged once.
func IsNewCause(last *string, err error) bool {
	cause := Cause(err)
	changed := cause != *last
	*last = cause
	return changed
}

// recovered logs that the objects are listed and watched after an error was logged.
func (l *Loop[Object]) recovered() {
	if l.failure != "" && !l.listed.IsZero() && l.opened && l.short < shortInARow {
		l.failure, l.forbidden = "", time.Time{}
		l.Log.Info("watching again", "watch", l.What)
	}
}

// store hands what the reflector learns to the Sink, on the reflector's goroutine.
type store[Object runtime.Object] struct{ *Loop[Object] }

// Add takes a new object.
func (s *store[Object]) Add(object any) error { return s.deliver(object, s.Sink.Put) }

// Update takes a changed object.
func (s *store[Object]) Update(object any) error { return s.deliver(object, s.Sink.Put) }

// Delete takes an object that is gone.
func (s *store[Object]) Delete(object any) error { return s.deliver(object, s.Sink.Remove) }

func (s *store[Object]) deliver(object any, take func(Object)) error {
	s.delivered, s.short = true, 0
	return with(object, take)
}

// Replace takes a listing.
func (s *store[Object]) Replace(listed []any, version string) error {
	objects := make([]Object, 0, len(listed))
	for _, object := range listed {
		if err := with(object, func(o Object) { objects = append(objects, o) }); err != nil {
			return err
		}
	}
	s.Sink.Replace(objects, version)
	now := time.Now()
	s.listed, s.heardOf, s.heard, s.began = now, false, now, now
	s.recovered()
	return nil
}

// UpdateResourceVersion is called for each event, bookmarks included.
func (s *store[Object]) UpdateResourceVersion(string) {
	s.heard, s.heardOf = time.Now(), true
	if !s.isShort() {
		s.short = 0
	}
	s.recovered()
}

// Resync does nothing: there is nothing to repeat.
func (s *store[Object]) Resync() error { return nil }

func with[Object any](object any, take func(Object)) error {
	o, ok := object.(Object)
	if !ok {
		return fmt.Errorf("the watch delivered %T instead of %T", object, o)
	}
	take(o)
	return nil
}
