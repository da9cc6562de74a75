package cli

import (
	"cmp"
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// explainer explains workloads. What several of them depend on is read once, and only when one depends on it. One goroutine uses it.
type explainer struct {
	question

	flags      *whyFlags
	client     client.Reader
	configured configured
	now        time.Time

	installed func() installationState
	labelsOf  func(namespace string) (map[string]string, error)
	events    func(eventsOf) (map[types.UID][]explain.Warning, error)
	jobs      func(namespace string) ([]cronrun.Job, error)
	objects   func(objectsOf) (annotation.Listed, error)
	exists    func(objectKey) (bool, error)
	// read reads a config object, and state does so once.
	read, state func(objectKey) (digest.State, error)
	chain       func() (chained, error)
	// stopChain is nil where the chain does not run.
	stopChain func()
}

// end ends what runs.
func (e *explainer) end() {
	if e.stopChain != nil {
		e.stopChain()
	}
}

// objectsOf are the config objects of a kind.
type objectsOf struct {
	namespace string
	kind      reference.Kind
}

// objectKey names one config object or custom resource.
type objectKey struct {
	namespace string
	ref       reference.Ref
}

// once returns read, whose answer for each key is kept.
func once[K comparable, V any](read func(K) (V, error)) func(K) (V, error) {
	answers := map[K]func() (V, error){}
	return func(key K) (V, error) {
		if answers[key] == nil {
			answers[key] = sync.OnceValues(func() (V, error) { return read(key) })
		}
		return answers[key]()
	}
}

// newExplainer reads the configuration of the installation. Call end in the end.
func (f *whyFlags) newExplainer(ctx context.Context, config *rest.Config, q question) (*explainer, error) {
	c, err := newClient(ctx, config, corev1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	e := &explainer{question: q, flags: f, client: c, configured: q.configured(ctx, config), now: time.Now()}
	exists, err := e.configured.reader(ctx, config)
	if err != nil {
		return nil, err
	}
	e.installed = sync.OnceValue(func() installationState { return f.readInstalled(ctx, c, q.lease) })
	e.labelsOf = once(func(namespace string) (map[string]string, error) { return namespaceLabels(ctx, c, namespace) })
	e.events = once(func(of eventsOf) (map[types.UID][]explain.Warning, error) { return warnings(ctx, c, of) })
	e.jobs = once(func(namespace string) ([]cronrun.Job, error) {
		return jobs(ctx, c, namespace, q.selection.Keys.ConfigHash)
	})
	e.objects = once(func(of objectsOf) (annotation.Listed, error) { return listObjects(ctx, c, of, q.selection.Stakater) })
	e.exists = once(exists)
	read := sync.OnceValues(func() (readState, error) { return f.stateReader(config, c, e.installed().ring) })
	e.read = func(o objectKey) (digest.State, error) {
		state, err := read()
		if err != nil {
			return digest.State{}, err
		}
		return state(ctx, o)
	}
	e.forget()
	e.chain = sync.OnceValues(func() (chained, error) {
		var c chained
		var err error
		c, e.stopChain, err = readChain(ctx, config, q.selection, e.installed().ring)
		return c, err
	})
	return e, nil
}

// forget has config objects read again: those of workloads that are listed from now on, which may have been reloaded since.
func (e *explainer) forget() { e.state = once(e.read) }

// input reads the annotations of a workload. The errors say what else they depend on and cannot be read.
func (e *explainer) input(object workload.Object) (in explain.Input, unread []error) {
	in = explain.Input{
		Object: object, Keys: e.selection.Keys, Now: e.now,
		ReloadMissingRequired: e.reload.ReloadMissingRequired, RerunFinishedJobs: e.reload.RerunFinishedJobs, NotifyOnly: e.reload.NotifyOnly,
		Refractory: e.reload.Refractory,
	}
	if in.Stakater = &e.selection.Stakater.Keys; e.selection.WithoutStakater {
		in.Stakater, in.Unread = nil, in.Stakater
	}
	custom := &customObjects{Objects: e.listing(object.Namespace()), exists: e.exists, namespace: object.Namespace()}
	reader := stamp.Reader{
		Keys: in.Keys, Dialects: e.selection.Dialects(e.configured.known()), Strategy: e.reload.Strategy,
		Objects: func(string) (annotation.Objects, error) { return custom, nil },
	}
	in.View, in.Problems = reader.Read(object)
	if object.Kind.Schedules() && e.reload.WithoutRuns {
		in.View.Intent = in.View.Intent.NotAtOnce()
	}
	return in, []error{custom.failed}
}

// common says what cannot be read that is not about one workload.
func (e *explainer) common() []error {
	return append([]error{e.configured.problem}, e.installed().unread...)
}

// listing returns the config objects of a namespace.
func (e *explainer) listing(namespace string) *listedObjects {
	return &listedObjects{known: map[reference.Kind]annotation.Listed{}, list: func(kind reference.Kind) (annotation.Listed, error) {
		return e.objects(objectsOf{namespace, kind})
	}}
}

// explain reads what else bears on a workload: its context, and the states of its config objects. What can be left out of a Report is a
// Problem where it cannot be read.
func (e *explainer) explain(ctx context.Context, in explain.Input, unread []error) (explain.Report, error) {
	for _, err := range append(unread, e.readContext(&in)...) {
		if err != nil {
			in.Problems = append(in.Problems, annotation.Problem{Message: err.Error()})
		}
	}
	if err := e.readConfig(ctx, &in); err != nil {
		return explain.Report{}, err
	}
	return explain.Explain(in), nil
}

// readContext adds the digest keys and what else bears on the workload. The errors say what cannot be read.
func (e *explainer) readContext(in *explain.Input) []error {
	home := e.installed()
	in.Ring, in.KeySecret, in.NoKey, in.FailingWatch, in.Lease = home.ring, home.keySecret, home.noKey, home.failingWatch, home.lease
	outside, notChecked := e.outside(in.Object)
	in.Outside = cmp.Or(in.Outside, outside)
	sent, notListed := e.events(e.eventsOf(in.Object))
	in.Warnings = sent[types.UID(in.Object.UID())]
	jobs, notKnown := e.jobsOf(*in)
	in.Jobs = jobs
	return []error{notChecked, notListed, notKnown}
}

// readConfig adds the states of the config objects that the workload tracks.
func (e *explainer) readConfig(ctx context.Context, in *explain.Input) (err error) {
	refs, namespace := in.View.Intent.Refs(), in.Object.Namespace()
	read := func(ref reference.Ref) (digest.State, error) { return e.state(objectKey{namespace, ref}) }
	last, _ := in.View.Managed.LastReload(in.Now)
	read, in.Paths = e.referents(namespace, referentsOf{refs, read, causesOf(last.Changes)})
	in.States, in.ReadErrors, err = readStates(ctx, refs, read)
	return err
}
