package reload

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// actions write what the Verdict about a workload calls for, and return how its reconciliation ends.
type actions struct {
	writer

	annotations annotation.Keys
	gather      gather.Gatherer
	gates       state.Gates
	state       *state.State
	queue       *queue.Queue
	events      *report.Reporter
	metrics     *actionMetrics
	// webhook means that an admission webhook of ours is meant to answer.
	webhook bool
	// pausedAt is the annotation with the begin of a pause of ours; empty if there are none.
	pausedAt string
	jobs     Jobs
	// standing are the reasons of the Warning Events that whoever reports them takes back by itself.
	standing []string
	log      logr.Logger
	now      func() time.Time
}

// Reload makes a reload that is due, by a stamp unless the kind or an annotation asks for something else.
func (a *actions) Reload(ctx context.Context, s gather.Subject, in policy.Input, verdict policy.Verdict) Outcome {
	switch {
	case a.gather.NotifyOnly:
		return a.notify(ctx, s, in, verdict)
	case s.Object.Kind.CreateOnly:
		return a.recreate(ctx, s)
	case s.View.Intent.Restart:
		return a.restart(ctx, s, in)
	case a.webhook:
		return a.request(ctx, s, in, verdict)
	default:
		return a.stamp(ctx, s, verdict)
	}
}

// The reasons of the Events about the Record and the stamp.
const (
	reasonAdopted = "RecordAdopted"
	reasonNoRoom  = "RecordTooLarge"
	reasonLost    = "StampLost"
)

// ReportLostStamp reports that a reload of ours has left no trace on the pod template: then it has restarted no pod either.
func (a *actions) ReportLostStamp(s gather.Subject) {
	if s.View.Managed[stamp.Hash] == "" && !s.View.Intent.Restart && a.state.Writes.IsStamped(s.Key, s.Object.Generation()) {
		a.events.Warn(s.Reported(), reasonLost, lost(s.Object.Kind).Error())
	}
}

// lost explains how a stamp can be made and not be there.
func lost(kind workload.Kind) error {
	return fmt.Errorf("the pods are not restarted: the stamp on the pod template at %[1]s is not stored; "+
		"the schema of %[2]s drops metadata.annotations there: declare them, "+
		"or set x-kubernetes-preserve-unknown-fields", strings.Join(kind.Template, "."), kind.Kind)
}
