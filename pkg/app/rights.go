package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/chain/rights"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

const (
	// rightsAgain is when missing rights are asked for again, rightsLook how often anything else is looked at: a new leader
	// reports what it knows.
	rightsAgain, rightsLook = time.Minute, 5 * time.Second
	// rightsLimit bounds the questions of one check: there may be thousands.
	rightsLimit = 2 * time.Minute
	// rightsSkipped is how many looks at most pass without a question after one that had no answer.
	rightsSkipped = int(5*time.Minute/rightsLook) - 1
)

// permissionCheck asks for the rights on the custom resources of each configuration, and again while any is missing. It reports like
// watchReporter: in the log of every replica, and in Events of the leader on the installation's own Deployment. A right that is
// withdrawn later shows in the health of the watch.
type permissionCheck struct {
	ask        rights.Ask
	namespaces []string
	location   string
	leads      func() bool
	recorder   events.EventRecorder
	regarding  func(ctx context.Context) *corev1.ObjectReference
	// predecessor is asked whether the last Event about the rights says that some are missing.
	predecessor predecessor
	log         logr.Logger

	mu     sync.Mutex
	needed []referent.Right
	fresh  bool // needed has not been asked for

	// The goroutine of Start alone uses the others. lacking are the rights that were missing when they were last asked for, missing
	// describes them, logged and reported are what was last said of them.
	lacking                   []referent.Right
	missing, logged, reported string
	asked, reportedAt         time.Time
	// skip is how many looks are still to pass without a question, skips how many after the next failure.
	skip, skips int
}

var _ manager.LeaderElectionRunnable = (*permissionCheck)(nil)

// NeedLeaderElection is false: a standby needs the rights, too.
func (p *permissionCheck) NeedLeaderElection() bool { return false }

// Configure takes other resources. It does no I/O.
func (p *permissionCheck) Configure(definitions []referent.Definition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needed, p.fresh = referent.Rights(definitions, p.namespaces), true
}

// Start looks until the context ends.
func (p *permissionCheck) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) { p.checkIfDue(ctx, time.Now()) }, rightsLook)
	return nil
}

// checkIfDue asks if that is due, and reports what has changed.
func (p *permissionCheck) checkIfDue(ctx context.Context, now time.Time) {
	p.mu.Lock()
	fresh := p.fresh
	p.mu.Unlock()
	if fresh || p.missing != "" && now.Sub(p.asked) >= rightsAgain {
		if !p.askPermissions(ctx, now) {
			return
		}
	}
	if p.missing != p.logged {
		p.logged = p.missing
		p.write()
	}
	if !p.leads() {
		return
	}
	p.takeOverReport(ctx)
	if p.missing != p.reported || p.missing != "" && now.Sub(p.reportedAt) >= reportAgain {
		p.reported, p.reportedAt = p.missing, now
		p.predecessor.close()
		p.emit(ctx)
	}
}

// takeOverReport takes the report of an earlier leader that rights are missing for an own one, once all are granted: nothing else ends it.
func (p *permissionCheck) takeOverReport(ctx context.Context) {
	if p.asked.IsZero() || p.missing != "" {
		return
	}
	if p.predecessor.reportedFailing(ctx, p.log) {
		p.reported = "rights of an earlier leader"
	}
}

// askPermissions asks for the rights of a new configuration, else for those that were missing. It is false if there is no answer; then it asks
// again at a later check, with growing pauses.
func (p *permissionCheck) askPermissions(ctx context.Context, now time.Time) bool {
	if p.skip > 0 {
		p.skip--
		return false
	}
	p.mu.Lock()
	needed, fresh := p.lacking, p.fresh
	if fresh {
		needed, p.fresh = p.needed, false
	}
	p.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, rightsLimit)
	defer cancel()
	missing, err := rights.Missing(asking, p.ask, needed)
	if err != nil {
		p.unanswered(ctx, fresh, err)
		return false
	}
	p.asked, p.lacking, p.missing, p.skips = now, missing, "", 0
	if len(missing) > 0 {
		p.missing = rights.Describe(missing, p.location)
	}
	return true
}

// unanswered logs the first of some failures in a row, and has the next question wait.
func (p *permissionCheck) unanswered(ctx context.Context, fresh bool, err error) {
	if fresh {
		p.mu.Lock()
		p.fresh = true
		p.mu.Unlock()
	}
	log := p.log
	if p.skips > 0 {
		log = log.V(1)
	}
	if ctx.Err() == nil {
		log.Info("cannot ask for the rights on custom resources; retrying", "error", err.Error())
	}
	p.skip, p.skips = p.skips, min(2*p.skips+1, rightsSkipped)
}

func (p *permissionCheck) write() {
	if p.missing == "" {
		p.log.Info("all rights on custom resources are granted")
		return
	}
	p.log.Info("rights on custom resources are missing; custom resources that need them are held", "missing", p.missing)
}

func (p *permissionCheck) emit(ctx context.Context) {
	kind, reason, note := corev1.EventTypeWarning, watchhealth.EventRightsMissing, event.Note(p.missing)
	if p.missing == "" {
		kind, reason, note = corev1.EventTypeNormal, watchhealth.EventRightsGranted, "all rights on custom resources are granted"
	}
	p.recorder.Eventf(p.regarding(ctx), nil, kind, reason, event.Action("Watch", fmt.Sprint(note, p.reportedAt)), "%s", note)
}

// buildPermissionCheck builds the check of the rights on custom resources.
func (b *builder) buildPermissionCheck(mgr manager.Manager) (*permissionCheck, error) {
	client, err := authorizationclient.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("make a client for access reviews: %w", err)
	}
	p := &permissionCheck{
		ask: rights.Own(client), namespaces: b.options.Selection.Scope.Namespaces, location: b.options.Selection.Configuration.String(),
		leads: elected(mgr), recorder: b.events,
		regarding: ownDeployment(mgr.GetAPIReader(), b.options.Namespace, b.options.Installation),
		predecessor: predecessor{failing: lastReport(
			b.eventClient, b.options.Namespace, b.options.Installation, watchhealth.EventRightsMissing, watchhealth.EventRightsGranted)},
		log: b.log.WithName("rights"),
	}
	return p, mgr.Add(p)
}
