package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

const (
	// watchLookInterval is how often the health of the watches is looked at.
	watchLookInterval = 10 * time.Second
	// watchPatience is how long a watch must fail to be reported: an API server that restarts is back by then, and the
	// informers, which pause for up to a minute, have tried again.
	watchPatience = 90 * time.Second
	// watchEventPause is the least time between two Events, and between two times that failing watches are logged.
	watchEventPause = time.Minute
	// watchesNamed is how many watches an Event names.
	watchesNamed = 6
)

// reportsWatches has a report look at watches.
func (r *installationReport) reportsWatches(statuses func() []watchhealth.Status) {
	r.interval, r.pause = watchLookInterval, watchEventPause
	var logged map[watchhealth.Watch]watchhealth.Reason
	r.look = func(_ context.Context, now time.Time) (finding, bool) {
		all := statuses()
		working := func(s watchhealth.Status) bool { return s.Healthy() || now.Sub(s.Since) < watchPatience }
		failing := slices.DeleteFunc(slices.Clone(all), working)
		unhealthy := func(s watchhealth.Status) bool { return !s.Healthy() }
		return finding{
			what: summary(failing), note: failingNote(failing), well: len(all) > 0 && !slices.ContainsFunc(all, unhealthy),
			write: func() { logged = logFailing(r.log, failing, logged) },
		}, true
	}
}

// logFailing logs the watches that fail, except those of which the same reason was logged. It returns what is logged now.
func logFailing(
	log logr.Logger, failing []watchhealth.Status, before map[watchhealth.Watch]watchhealth.Reason,
) map[watchhealth.Watch]watchhealth.Reason {
	if len(failing) == 0 {
		log.Info("all watches work again")
	}
	logged := map[watchhealth.Watch]watchhealth.Reason{}
	for _, s := range failing {
		logged[s.Watch] = s.Reason
		if reason, ok := before[s.Watch]; ok && reason == s.Reason {
			continue
		}
		log.Info("a watch fails: changes do not arrive", "resource", s.Resource, "namespace", s.Namespace,
			"since", s.Since.UTC().Format(time.RFC3339), "reason", s.Reason, "detail", s.Detail)
	}
	return logged
}

// summary says which watches fail for which reason, so that two such states can be compared.
func summary(failing []watchhealth.Status) string {
	var b strings.Builder
	for _, s := range failing {
		fmt.Fprintf(&b, "%s %s\n", s.Watch, s.Reason)
	}
	return b.String()
}

func failingNote(failing []watchhealth.Status) string {
	if len(failing) == 0 {
		return "all watches work again: changes arrive at once"
	}
	return "watches fail: changes are found late, by periodic reads of the tracked objects: " +
		reference.Clauses(failing, watchesNamed, func(s watchhealth.Status) string {
			return fmt.Sprintf("%s since %s (%s)", s.Watch, s.Since.UTC().Format(time.RFC3339), s.Detail)
		})
}

// buildWatchReporter adds what reports failing watches to the manager.
func (b *builder) buildWatchReporter(mgr manager.Manager) error {
	b.registry.MustRegister(newWatchMetrics(b.watches))
	r := b.newReport(mgr, "watches", watchhealth.EventFailing, watchhealth.EventRecovered)
	r.reportsWatches(b.watches.Statuses)
	return mgr.Add(&r)
}
