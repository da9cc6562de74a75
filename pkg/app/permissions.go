package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/chain/permissions"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

const (
	// permissionsAgain is when missing permissions are asked for again, permissionsLook how often anything else is looked at: a new leader
	// reports what it knows.
	permissionsAgain, permissionsLook = time.Minute, 5 * time.Second
	// permissionsLimit bounds the questions of one check: there may be thousands.
	permissionsLimit = 2 * time.Minute
	// permissionsSkipped is how many looks at most pass without a question after one that had no answer.
	permissionsSkipped = int(5*time.Minute/permissionsLook) - 1
)

// permissionCheck asks for the permissions on the custom resources of each configuration, and again while any is missing. Of those that are
// withdrawn later, list and watch show in the health of the watch, and patch where a digest is not written. After a refused get it asks
// again.
type permissionCheck struct {
	installationReport

	ask        permissions.Ask
	namespaces []string
	location   string

	mu     sync.Mutex
	needed []referent.Permission
	fresh  bool // needed has not been asked for
	// refused: a read was refused, and lacking does not say why.
	refused bool
	// lacking are the permissions that were missing when they were last asked for.
	lacking []referent.Permission

	// The goroutine of Start alone uses the others. missing describes what is lacking.
	missing string
	asked   time.Time
	// skip is how many looks are still to pass without a question, skips how many after the next failure.
	skip, skips int
}

// Configure takes other resources. It does no I/O.
func (p *permissionCheck) Configure(definitions []referent.Definition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needed, p.fresh = referent.Permissions(definitions, p.namespaces), true
}

// Refused takes in that the API server has refused to get a custom resource.
func (p *permissionCheck) Refused(key referent.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := slices.ContainsFunc(p.lacking, func(l referent.Permission) bool {
		return l.Resource == key.GroupResource() && (l.Namespace == "" || l.Namespace == key.Namespace) && slices.Contains(l.Verbs, "get")
	})
	p.refused = p.refused || !known
}

// current asks if that is due.
func (p *permissionCheck) current(ctx context.Context, now time.Time) (finding, bool) {
	p.mu.Lock()
	fresh, again := p.fresh, p.refused || len(p.lacking) > 0
	p.mu.Unlock()
	if fresh || again && now.Sub(p.asked) >= permissionsAgain {
		if !p.askPermissions(ctx, now) {
			return finding{}, false
		}
	}
	if p.missing != "" {
		return finding{what: p.missing, note: p.missing, write: p.write}, true
	}
	return finding{note: "all permissions on custom resources are granted", well: !p.asked.IsZero(), write: p.write}, true
}

// askPermissions asks for all permissions of a new configuration, and after a refused read, else for those that were missing. It is false
// if there is no answer; then it asks again at a later check, with growing pauses.
func (p *permissionCheck) askPermissions(ctx context.Context, now time.Time) bool {
	if p.skip > 0 {
		p.skip--
		return false
	}
	p.mu.Lock()
	needed, fresh := p.lacking, p.fresh || p.refused
	if fresh {
		needed, p.fresh, p.refused = p.needed, false, false
	}
	p.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, permissionsLimit)
	defer cancel()
	missing, err := permissions.Missing(asking, p.ask, needed)
	if err != nil {
		p.unanswered(ctx, fresh, err)
		return false
	}
	p.mu.Lock()
	p.lacking = missing
	p.mu.Unlock()
	p.asked, p.missing, p.skips = now, "", 0
	if len(missing) > 0 {
		p.missing = permissions.Describe(missing, p.location)
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
		log.Info("cannot ask for the permissions on custom resources; retrying", "error", err.Error())
	}
	p.skip, p.skips = p.skips, min(2*p.skips+1, permissionsSkipped)
}

func (p *permissionCheck) write() {
	if p.missing == "" {
		p.log.Info("all permissions on custom resources are granted")
		return
	}
	p.log.Info("permissions on custom resources are missing; custom resources that need them are held", "missing", p.missing)
}

// buildPermissionCheck builds the check of the permissions on custom resources.
func (b *builder) buildPermissionCheck(mgr manager.Manager) (*permissionCheck, error) {
	client, err := authorizationclient.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("make a client for access reviews: %w", err)
	}
	p := &permissionCheck{
		installationReport: b.newReport(mgr, "permissions", watchhealth.EventPermissionsMissing, watchhealth.EventPermissionsGranted),
		ask:                permissions.Own(client), namespaces: b.options.Selection.Scope.Namespaces, location: b.options.Selection.Configuration.String(),
	}
	p.look, p.interval = p.current, permissionsLook
	return p, mgr.Add(p)
}
