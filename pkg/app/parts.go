package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/chain/permissions"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/keyring"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/serve"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
	"github.com/pod-reloader/pod-reloader/pkg/workloadstate"
)

// loopStop is how long a reload that is under way may take when the program stops; then the lease is given away.
const loopStop = 10 * time.Second

// reader knows the annotations, in all dialects.
func (b *builder) reader() stamp.Reader {
	selection := b.options.Selection
	return stamp.Reader{
		Keys: selection.Keys, Dialects: selection.Dialects(b.referents()), Objects: b.objectsOf, Strategy: b.options.Reload.Strategy,
	}
}

// referents is what the reading of annotations knows of custom resources. Without a structured configuration no workload is found.
func (b *builder) referents() options.Referents {
	known := options.Referents{Resource: b.chain.Check}
	if !b.options.Selection.Configuration.IsZero() {
		known.Workloads = b.chain.Workload
	}
	return known
}

// writesSHA1 says of which kinds a plain digest of the content goes into pod templates.
func (b *builder) writesSHA1(kind reference.Kind) bool {
	return b.options.Reload.Strategy != annotation.ConfigHash && (kind != reference.Secret || b.options.PlainSecrets)
}

// buildState builds the state of the digest keys and of the configuration.
func (b *builder) buildState() (err error) {
	client, err := configstate.NewHTTPClient(b.config)
	if err != nil {
		return fmt.Errorf("make a client for configuration: %w", err)
	}
	b.secretsClient = client
	if b.keys, err = keyring.New(keyring.Options{
		Config: b.config, HTTPClient: client,
		Namespace: b.options.Namespace, Name: b.options.DigestKeySecret,
		Random: b.host.Random, Now: b.host.Now,
		Log: b.log.WithName("keyring"),
	}); err != nil {
		return err
	}
	b.store, err = configstate.New(configstate.Options{
		Config:         b.config,
		HTTPClient:     client,
		Namespaces:     b.options.Selection.Scope.Namespaces,
		Without:        b.options.Selection.Unhandled(),
		Ring:           b.keys.Ring,
		OwnAnnotations: b.options.Selection.Marks,
		OwnLabels:      b.options.Selection.Stakater.LooksAt,
		SHA1:           b.writesSHA1,
		Now:            b.host.Now,
		Log:            b.log.WithName("configstate"),

		SecretProviderClasses: b.options.Selection.Stakater.SecretProviderClasses,
	})
	if err != nil {
		return err
	}
	if b.chain, err = b.buildChain(); err != nil {
		return err
	}
	b.patterns = pattern.NewIndex[workload.Key](b.store.Names)
	return nil
}

// buildManager makes the manager with the loop in it. The HTTP servers are not its business: they live longer.
func (b *builder) buildManager() (manager.Manager, error) {
	o := b.options
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	stop, severalInOneProcess := loopStop, true
	mgr, err := manager.New(b.config, manager.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(o.Selection),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		PprofBindAddress:              o.Servers.PprofAddress,
		Controller:                    config.Controller{SkipNameValidation: &severalInOneProcess},
		LeaderElection:                o.Election.Enabled,
		LeaderElectionID:              o.Election.Lease,
		LeaderElectionNamespace:       o.Election.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.Election.LeaseDuration,
		RenewDeadline:                 &o.Election.RenewDeadline,
		RetryPeriod:                   &o.Election.RetryPeriod,
		GracefulShutdownTimeout:       &stop,
		Logger:                        b.log,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	b.namespaces.cache, b.namespaces.failing = mgr.GetCache(), b.watches.Failing
	if err := b.buildEvents(mgr); err != nil {
		return nil, err
	}
	if err := b.buildLoop(mgr); err != nil {
		return nil, fmt.Errorf("set up the loop: %w", err)
	}
	return mgr, nil
}

// buildLoop adds the watch loop to the manager.
func (b *builder) buildLoop(mgr manager.Manager) error {
	o := b.options
	api, err := newResources(mgr)
	if err != nil {
		return err
	}
	jobs, err := b.jobs(api)
	if err != nil {
		return err
	}
	return reload.SetupWithManager(mgr, reload.Dependencies{
		API: api, Store: chain.Store{Store: b.store, Chain: b.chain}, Keys: b.keys, Watches: b.watches, Metrics: b.registry, Workloads: b.workloads(api),
		Summary: b.summary(), Events: b.outbox, EventList: b.eventClient,
		Past: b.store.At, Patterns: b.patterns, Alerts: b.alerts(), Reread: b.chain.OnReread, Retry: b.chain.Retry,
	}, reload.Options{
		Instance:          b.instance,
		Kinds:             b.kinds,
		Reader:            b.reader(),
		Scope:             o.Selection.Scope,
		Settle:            o.Reload.Settle,
		SettleMax:         o.Reload.SettleMax,
		Refractory:        o.Reload.Refractory,
		Settings:          o.Reload.Settings,
		WithoutRuns:       o.Reload.WithoutRuns,
		PausedAt:          o.Selection.Stakater.Keys.PausedAt,
		UnreadPausePeriod: unreadPausePeriod(o.Selection),
		Webhook:           o.Webhook.Enabled,
		Workers:           o.Reload.Workers,
		CountByNamespace:  o.Reload.CountByNamespace,
		Jobs:              jobs,
		Now:               b.host.Now,
	})
}

// unreadPausePeriod is the annotation with the period of a pause where no dialect reads it; empty if one does.
func unreadPausePeriod(selection options.Selection) string {
	if selection.WithoutStakater {
		return selection.Stakater.Keys.PausePeriod
	}
	return ""
}

// keptPause is the annotation with the begin of a pause that the webhook keeps; empty where no reload begins one.
func keptPause(selection options.Selection) string {
	if selection.WithoutStakater {
		return ""
	}
	return selection.Stakater.Keys.PausedAt
}

// jobs says how Jobs are created again. Only the annotations of Reloader ask for that.
func (b *builder) jobs(api *resources) (action.Jobs, error) {
	o := b.options
	_, served := o.Selection.Kinds.Get(workload.Job().GroupVersionKind)
	jobs := action.Jobs{
		Follow: served && !o.Selection.WithoutStakater, RerunFinished: o.Reload.RerunFinishedJobs,
		Store: jobrun.Store{Namespace: o.Namespace, Installation: o.Installation, Keys: o.Selection.Keys},
	}
	if !o.Selection.WithoutSecrets && len(o.Selection.Scope.Namespaces) == 0 {
		return jobs, nil // all Secrets may be listed
	}
	client, err := authorizationclient.NewForConfigAndClient(api.config, api.http)
	if err != nil {
		return jobs, fmt.Errorf("make a client for access reviews: %w", err)
	}
	jobs.MayList = func(ctx context.Context) (bool, error) {
		return permissions.Own(client)(ctx, authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: o.Namespace})
	}
	return jobs, nil
}

// workloads builds the watches of the workloads, one for each kind.
func (b *builder) workloads(api *resources) func(workload.Kind, func(before, after workload.Summary, listed string)) tracking.Workloads {
	source := workloadstate.New(workloadstate.Options{
		Config: api.config, HTTPClient: api.http, Mapper: api,
		Namespaces: b.options.Selection.Scope.Namespaces,
		Discovered: b.watches.Discovered,
		Keep:       keep(b.options.Selection),
		Log:        b.log.WithName("workloadstate"),
	})
	return func(kind workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
		return source.Watch(kind, changed)
	}
}

// summary returns the function that reduces a workload that is read live to what its watch keeps.
func (b *builder) summary() func(workload.Object) workload.Summary {
	kept := keep(b.options.Selection)
	return func(o workload.Object) workload.Summary { return workload.Summary{Kind: o.Kind, Kept: o.Keep(kept)} }
}

// buildProbes makes the readiness of this replica.
func (b *builder) buildProbes() *probes {
	conditions := append([]condition{{"digest-key", b.keyLoaded}}, b.conditions...)
	if b.applier != nil {
		conditions = append(conditions, condition{"configuration", b.applier.Ready})
	}
	return &probes{log: b.log, conditions: conditions}
}

func (b *builder) keyLoaded() error {
	if !b.keys.Ready() {
		return fmt.Errorf("the digest key is not loaded yet: waiting for the Secret %s/%s", b.options.Namespace, b.options.DigestKeySecret)
	}
	return nil
}

// buildServers binds the listeners for probes and metrics.
func (b *builder) buildServers(mgr manager.Manager, p *probes) error {
	if address := b.options.Servers.ProbeAddress; address != "0" {
		s, err := serve.Listen(b.host.Listen, "probes", address, p.handler(), nil)
		if err != nil {
			return err
		}
		b.serving = append(b.serving, s)
	}
	if b.options.Servers.MetricsAddress == "0" {
		return nil
	}
	s, err := b.buildMetrics(mgr.GetHTTPClient(), p.handler())
	if err != nil {
		return err
	}
	b.serving = append(b.serving, s)
	return nil
}

func (b *builder) buildMetrics(client *http.Client, probes http.Handler) (*manager.Server, error) {
	observed{
		version: b.version, synced: b.store.Synced, keyed: b.keys.Ready, waiting: b.store.Waiting, certificate: b.certificate,
	}.register(b.registry)
	handler := metricsHandler(b.gatherer)
	o := b.options
	if !o.Servers.MetricsSecure {
		return serve.Listen(b.host.Listen, "metrics", o.Servers.MetricsAddress, metricsMux(handler, probes), nil)
	}
	handler, err := protect(handler, b.config, client, b.log)
	if err != nil {
		return nil, err
	}
	var get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	if b.certificate != nil {
		get = b.certificate.Get
	} else if get, err = selfSigned(); err != nil {
		return nil, err
	}
	secure := &tls.Config{MinVersion: o.Webhook.MinTLSVersion}
	serve.Secured(o.Webhook, get)(secure)
	return serve.Listen(b.host.Listen, "metrics", o.Servers.MetricsAddress, metricsMux(handler, probes), secure)
}
