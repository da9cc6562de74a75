package refresh

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Content is what there is at the place of a configuration. One of Text, Missing and Faulty is set.
type Content struct {
	// Text is the configuration.
	Text []byte
	// Missing says why there is nothing to read: no object, no file, no permission on it.
	Missing error
	// Faulty says what is wrong with the object that has the text.
	Faulty error
	// Regarding is what Events are about; nil if there is no object in the cluster for them.
	Regarding *corev1.ObjectReference
}

// configuration reads the content. The reason is that of the Event that reports the error.
func (c Content) configuration() (parsed configuration.Configuration, reason string, err error) {
	switch {
	case c.Missing != nil:
		return parsed, reasonUnreadable, c.Missing
	case c.Faulty != nil:
		return parsed, reasonRejected, c.Faulty
	}
	parsed, err = configuration.Parse(c.Text)
	return parsed, reasonRejected, err
}

// The reasons of the Events on what holds the configuration.
const (
	reasonApplied    = "ConfigurationApplied"
	reasonRejected   = "ConfigurationRejected"
	reasonUnreadable = "ConfigurationUnreadable"
)

// ApplierOptions are what an Applier works with. All fields but Metrics are required.
type ApplierOptions struct {
	// Kinds are kept up to date.
	Kinds *Kinds
	// Flags are the kinds that there are without a configuration. One that the configuration has too is taken as the
	// configuration has it: that is the one that can be changed without a restart, and a kind can move from the command
	// line to the configuration without being without either.
	Flags workload.Kinds
	// Referents is called with the custom resources of each valid configuration, also if they are the same as before. It returns where
	// they have references to a kind that this installation does not handle.
	Referents func([]referent.Definition) (ignored []string)
	// Rejected is called for content that is missing or invalid; not where it may not be read, since it may be valid. Optional.
	Rejected func()
	// Recorder sends Events, once Lead has been called.
	Recorder events.EventRecorder
	Metrics  prometheus.Registerer
	Log      logr.Logger
}

// Applier puts what is valid in force, and reports what is not: in the log of every replica, and in Events of the leader.
// All methods may be called by any goroutine.
type Applier struct {
	options ApplierOptions
	// seen is true after the first Content, valid or not.
	seen atomic.Bool
	// valid is true while the current content is in force.
	valid atomic.Bool

	mu      sync.Mutex
	leads   bool
	applied bool // something valid was there once
	// referents are the custom resources in force.
	referents []referent.Definition
	problem   *problem
	// unreported is what was put in force while this process did not lead.
	unreported []application
}

// application is a configuration that was put in force at a time, or a part of it.
type application struct {
	at        time.Time
	regarding *corev1.ObjectReference
	eventType string
	text      string
}

const (
	// unreportedFor is how long a new leader reports what was put in force before it led: longer than an election takes, so that a
	// change while no replica led is reported. What is older, the leader of that time has reported.
	unreportedFor = 5 * time.Minute
	// maxUnreported bounds what is kept meanwhile.
	maxUnreported = 10
)

// problem is why the Content of now is not in force.
type problem struct {
	reason, text string
	regarding    *corev1.ObjectReference
}

// same reports whether a problem is the one that was reported: other edits of the object do not make it another one.
func (p *problem) same(other *problem) bool {
	if p == nil || p.reason != other.reason || p.text != other.text || (p.regarding == nil) != (other.regarding == nil) {
		return false
	}
	return p.regarding == nil || p.regarding.UID == other.regarding.UID
}

// NewApplier returns an Applier that has seen nothing yet.
func NewApplier(options ApplierOptions) *Applier {
	a := &Applier{options: options}
	if options.Metrics != nil {
		options.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pod_reloader_configuration_valid",
			Help: "1 if the current configuration of --config is in force; 0 if it is missing or invalid.",
		}, func() float64 {
			if a.valid.Load() {
				return 1
			}
			return 0
		}))
	}
	return a
}

// Ready says what is waited for until there was a first look at the configuration, be it that it is missing or invalid.
func (a *Applier) Ready() error {
	if !a.seen.Load() {
		return errUnseen
	}
	return nil
}

var errUnseen = errors.New("the configuration that --config names has not been read yet")

// Offer takes the content of now. It returns when what is valid in it is in force.
func (a *Applier) Offer(c Content) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.seen.Store(true)
	parsed, reason, err := c.configuration()
	if err != nil {
		a.valid.Store(false)
		if a.options.Rejected != nil && !denied(err) {
			a.options.Rejected()
		}
		a.reject(&problem{reason: reason, text: err.Error(), regarding: c.Regarding})
		return
	}
	started := time.Now()
	came, went := a.options.Kinds.Set(a.options.Flags.Override(parsed.WorkloadKinds...))
	ignored := a.options.Referents(parsed.Referents)
	a.valid.Store(true)
	changes := difference(came, went, a.setReferents(parsed.Referents))
	news := !a.applied || a.problem != nil || changes != nothingChanges
	a.applied, a.problem = true, nil
	if !news {
		return
	}
	a.options.Log.Info("configuration applied", "added", texts(came), "removed", texts(went), "referents", len(a.referents),
		"ignored", ignored, "duration", time.Since(started))
	a.reportApplied(newApplication(c.Regarding, changes, ignored))
}

// newApplication says what was put in force now. References without effect are a warning.
func newApplication(regarding *corev1.ObjectReference, changes string, ignored []string) application {
	now := application{time.Now(), regarding, corev1.EventTypeNormal, "applied: " + changes}
	if len(ignored) > 0 {
		now.eventType = corev1.EventTypeWarning
		now.text += "; no effect, because this installation does not handle the kind (--secrets=false): " + strings.Join(ignored, ", ")
	}
	return now
}

// reportApplied reports what was put in force, or keeps it for the case that this process leads soon.
func (a *Applier) reportApplied(applied application) {
	if a.leads {
		a.sendEvent(applied.regarding, applied.eventType, reasonApplied, applied.text)
		return
	}
	a.unreported = append(a.unreported, applied)
	a.unreported = a.unreported[max(0, len(a.unreported)-maxUnreported):]
}

// setReferents keeps the custom resources in force, and says what has changed; empty if nothing has.
func (a *Applier) setReferents(referents []referent.Definition) string {
	before := a.referents
	a.referents = referents
	switch {
	case reflect.DeepEqual(before, referents):
		return ""
	case len(referents) == 0:
		return "removed all referents"
	default:
		return reference.Count(len(referents), "referent")
	}
}

// reject leaves everything as it is and says why, once for each problem.
func (a *Applier) reject(p *problem) {
	p.text = event.Note(a.consequence() + ": " + p.text)
	if a.problem.same(p) {
		return
	}
	a.problem = p
	a.options.Log.Info("configuration not applied", "event", p.reason, "problem", p.text)
	a.sendEvent(p.regarding, corev1.EventTypeWarning, p.reason, p.text)
}

// consequence says what is in force instead.
func (a *Applier) consequence() string {
	if a.applied {
		return "the last valid configuration stays in force"
	}
	return "no valid configuration has been read since the start, only the kinds of the flags are handled"
}

// eventLifetime is how long the API server keeps an Event, by default.
const eventLifetime = time.Hour

// Lead reports, while this process is the leader, what is put in force and what is wrong: what has come shortly before, and what is
// wrong then, at once, and what stays wrong again when the API server has forgotten it. It returns when the context ends.
func (a *Applier) Lead(ctx context.Context) error {
	ticker := time.NewTicker(eventLifetime)
	defer ticker.Stop()
	a.lead(true)
	defer a.lead(false)
	for {
		a.repeat()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *Applier) lead(leads bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leads = leads
	if !leads {
		return
	}
	for _, applied := range a.unreported {
		if time.Since(applied.at) <= unreportedFor {
			a.reportApplied(applied)
		}
	}
	a.unreported = nil
}

// repeat reports what is wrong now.
func (a *Applier) repeat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.problem; p != nil {
		a.sendEvent(p.regarding, corev1.EventTypeWarning, p.reason, p.text)
	}
}

// sendEvent sends an Event if this process leads and the Event has an object to regard.
func (a *Applier) sendEvent(regarding *corev1.ObjectReference, eventType, reason, text string) {
	if !a.leads || regarding == nil {
		return
	}
	a.options.Recorder.Eventf(regarding, nil, eventType, reason, event.Action("Configure", text), "%s", event.Note(text))
}

const nothingChanges = "nothing changes"

// difference says in words what a change came to.
func difference(came, went []workload.Kind, referents string) string {
	var parts []string
	if len(came) > 0 {
		parts = append(parts, "added "+strings.Join(texts(came), ", "))
	}
	if len(went) > 0 {
		parts = append(parts, "removed "+strings.Join(texts(went), ", "))
	}
	if referents != "" {
		parts = append(parts, referents)
	}
	if len(parts) == 0 {
		return nothingChanges
	}
	return strings.Join(parts, "; ")
}

func texts(kinds []workload.Kind) []string {
	list := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		list = append(list, kind.String())
	}
	return list
}
