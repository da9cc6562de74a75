package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// rule is a fault of the API server, as long as it lasts: what becomes of the program's requests.
type rule struct {
	// client is a replica slot; empty means all of them.
	client string
	// verbs and resource limit the rule; empty means all.
	verbs    []string
	resource string
	// hold keeps requests waiting as long as the fault lasts.
	hold bool
	// percent of the requests are concerned.
	percent int
	// cut is set if nothing reaches the API server.
	cut bool
	// delay is the most that a request is under way.
	delay time.Duration
	// permission means that the requests are refused because a permission was withdrawn: access reviews say so, too.
	permission bool
	// fate says what becomes of a request; nil means that it is served.
	fate func(s *simulation, call *world.Call) apiserver.Fate
}

func (r *rule) matches(call *world.Call) bool {
	return isProgram(call.Client) && (r.client == "" || slotOf(call.Client) == r.client) &&
		(len(r.verbs) == 0 || slices.Contains(r.verbs, call.Verb)) &&
		(r.resource == "" || call.Key.Resource.Plural == r.resource)
}

// replicaPrefix begins the names of all replicas.
const replicaPrefix = "replica-"

// replicaName is the name of the slot of a replica.
func replicaName(n int) string { return replicaPrefix + strconv.Itoa(n) }

// isProgram reports whether a client is a replica.
func isProgram(client string) bool { return strings.HasPrefix(client, replicaPrefix) }

// slotOf returns the slot of a replica: "replica-0" for "replica-0.2".
func slotOf(client string) string {
	name, _, _ := strings.Cut(client, ".")
	return name
}

// faults are those that last now.
type faults struct {
	rules []*rule
	// jitter is the most that any request of anyone is under way; 0 in histories without faults.
	jitter          time.Duration
	slowControllers bool
	// webhookAway, webhookHangs and webhookPercent are about calls of our webhook.
	webhookAway, webhookHangs int
	webhookPercent            int
	// restarting is more than 0 while the API server refuses the program's connections, since it starts again.
	restarting atomic.Int64
	// foreign has what another's validating webhook does to writes in a namespace: "reject" or "hang".
	foreign map[string]string
	// strippers are others' mutating webhooks that remove managed annotations.
	strippers []*stripper
	// definitions has the ways in which the definition of Rollouts is taken away.
	definitions []string
}

func (f *faults) remove(r *rule) {
	f.rules = slices.DeleteFunc(f.rules, func(other *rule) bool { return other == r })
}

// atOnce is the fate of a request that does not wait for the scheduler. One that cannot reach the API server is refused: after
// a broken connection client-go would wait and try again while it holds its lock.
func (f *faults) atOnce(client string) apiserver.Fate {
	for _, r := range f.rules {
		if r.cut && isProgram(client) && (r.client == "" || slotOf(client) == r.client) {
			return apiserver.Fate{Refuse: refusal(500)}
		}
	}
	return apiserver.Fate{}
}

// delay says how long a request is under way.
func (f *faults) delay(s *simulation, call *world.Call) time.Duration {
	random := s.chance(call)
	most := time.Duration(0)
	if f.jitter > 0 && random.IntN(10) == 0 {
		most = f.jitter
	}
	for _, r := range f.rules {
		if r.delay > most && r.matches(call) && random.IntN(100) < r.percent {
			most = r.delay
		}
	}
	least := time.Duration(0)
	if isProgram(call.Client) {
		least = time.Duration(s.history.Setup.Latency)
	}
	if most == 0 {
		return least
	}
	return least + time.Duration(random.Int64N(int64(most)))
}

// regular reports whether a request is one of those that go on all the time, whatever happens.
func regular(call *world.Call) bool { return call.Key.Resource == world.Leases || call.Verb == "watch" }

// chance is what decides about a request.
func (s *simulation) chance(call *world.Call) *rand.Rand {
	if regular(call) {
		return s.apart
	}
	return s.random
}

// fate says what becomes of a request that is about to be served: what the first rule says that has something to say about it.
func (f *faults) fate(s *simulation, call *world.Call) apiserver.Fate {
	for _, r := range f.rules {
		if r.fate == nil || !r.matches(call) || s.chance(call).IntN(100) >= r.percent {
			continue
		}
		if fate := r.fate(s, call); fate != (apiserver.Fate{}) {
			s.hits++
			return fate
		}
	}
	return apiserver.Fate{}
}

var errRefused = errors.New("connection refused by the simulated fault")

// webhook says what becomes of a call of our webhook: an error, after a while or at once, or nil.
func (f *faults) webhook(ctx context.Context, s *simulation, _ *admissionv1.AdmissionReview) error {
	s.balancing.Lock()
	away, hangs := f.webhookAway > 0, f.webhookHangs > 0
	hit := f.webhookPercent > 0 && s.balance.IntN(100) < f.webhookPercent
	s.balancing.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	case away, hit:
		return errors.Join(errRefused, syscall.ECONNREFUSED)
	default:
		return nil
	}
}

// webhookFaults changes the faults of webhooks: calls of them may be under way.
func (s *simulation) webhookFaults(change func(f *faults)) {
	s.balancing.Lock()
	defer s.balancing.Unlock()
	change(&s.faults)
}

// holds says why a request does not go on now; nil if it may.
func (s *simulation) holds(w *waiter) error {
	for _, r := range s.replicas {
		if r.name == w.call.Client && r.frozen.Load() {
			return errFrozen
		}
	}
	for _, r := range s.faults.rules {
		if r.hold && r.matches(w.call) {
			return errHeld
		}
	}
	return nil
}

var (
	errFrozen = errors.New("the replica is frozen")
	errHeld   = errors.New("the request has no answer yet")
)

// down reports to the oracle that a replica is not running.
func down(name string, is bool) oracle.Fault {
	return oracle.Fault{At: time.Now(), Kind: "down", Scope: name, Begin: is}
}

// begin begins the fault of a step, and ends it when its time is over.
func (s *simulation) begin(step history.Step) {
	kind, ok := findFault(step.Do)
	if !ok || s.lacks(step.On) {
		return
	}
	end := kind.begin(s, step)
	if end == nil && !kind.instant {
		return // the replica does not run now: the oracle must not excuse the program for it
	}
	s.tried[step.Do]++
	s.oracle.acts[step.Do]++
	scope := kind.scope(step)
	if end == nil { // it is over in this moment
		s.oracle.Fault(oracle.Fault{At: time.Now(), Kind: kind.kind, Scope: scope, Begin: true})
		s.oracle.Fault(oracle.Fault{At: time.Now(), Kind: kind.kind, Scope: scope})
		return
	}
	kind.kind = kind.of(step)
	s.oracle.Fault(oracle.Fault{At: time.Now(), Kind: kind.kind, Scope: scope, Begin: true})
	once := false
	finish := func() {
		if once {
			return
		}
		once = true
		end()
		s.oracle.Fault(oracle.Fault{At: time.Now(), Kind: kind.kind, Scope: scope})
	}
	s.healing = append(s.healing, finish)
	s.after(duration(step), finish)
	if until := time.Now().Add(duration(step)); until.After(s.faulty) {
		s.faulty = until
	}
	if slices.Contains([]string{"permissions", "watch-refused", writesDenied, kindAway, kindContradicted}, kind.kind) {
		s.after(blindFor, s.showBlindness)
	}
}

// of returns the oracle's word for a fault, which may depend on the parameters.
func (k faultKind) of(step history.Step) string {
	switch {
	case denies(step):
		return "denied"
	case step.With["how"] == howShort:
		return listsShort
	case step.Do == strippingWebhook:
		return strippedKind(step)
	case step.With["way"] == wayContradicted:
		return kindContradicted
	case step.With["verbs"] == "list,watch":
		return "watch-refused" // single objects can be read
	case deniesWrites(step):
		return writesDenied
	}
	return k.kind
}

// lacks reports whether a fault is about a replica that this installation does not have.
func (s *simulation) lacks(on string) bool { return isProgram(on) && s.slot(on) == nil }

// denies reports whether a fault has requests refused in a way that does not pass by itself, so that they are repeated rarely.
// It does not blind the program: that may list and watch.
func denies(step history.Step) bool {
	return step.With["verbs"] == "get" || slices.Contains([]string{"401", "403", "410"}, step.With["code"])
}

// blindFor is how long after the begin of a fault that blinds the program, or denies its writes, its metrics are read: longer than it may
// take to show.
const blindFor = 6 * time.Minute

// scrape hands the metrics of all replicas to the oracle.
func (s *simulation) scrape() {
	for _, r := range s.replicas {
		scraped := r.scrape()
		s.oracle.ask(func(o *oracle.Oracle) { o.Metrics(r.name, scraped, time.Now()) })
	}
}

// heal ends all faults that last.
func (s *simulation) heal() {
	for _, finish := range s.healing {
		finish()
	}
	s.healing = nil
	s.faults.jitter = 0
}

// refusal is an error of the API server.
func refusal(code int) *metav1.Status {
	reasons := map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 409: metav1.StatusReasonConflict,
		410: metav1.StatusReasonExpired, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
		503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout,
	}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: "refused by the simulated API server",
	}
	if code == 429 || code == 503 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return status
}
