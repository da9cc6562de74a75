// Package app is the composition root: it builds the parts of the program out of its options, connects them, and starts
// and stops them in the right order. Nothing is decided here about workloads.
package app

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/keyring"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/serve"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Run runs the program on a Host until the context ends. The error says what failed, or what stopped by itself.
func Run(ctx context.Context, host Host, o options.Options, version string, log logr.Logger) error {
	host = host.complete()
	host.SetLogger(log)
	config, err := host.restConfig(o.Kubeconfig, version)
	if err != nil {
		return err
	}
	watches := &watchhealth.Monitor{}
	wrapTransport(config, watches)
	b := builder{watches: watches, options: o, version: version, host: host, config: config, log: log, kinds: refresh.NewKinds(o.Selection.Kinds)}
	b.registry, b.gatherer = host.metrics()
	life, err := b.build()
	if err != nil {
		return err
	}
	log.Info("starting", "version", version, "webhook", o.Webhook.Enabled, "namespaces", o.Selection.Scope.Namespaces,
		"annotationPrefix", strings.TrimSuffix(o.Selection.Keys.ConfigHash, "config-hash"), "leaderElection", o.Election.Enabled, "installation", o.Installation)
	return life.run(ctx)
}

// wrapTransport makes all clients of a configuration report their watches, and let large responses wait for their turn.
func wrapTransport(config *rest.Config, watches *watchhealth.Monitor) {
	config.Wrap(watches.Wrap)
	config.Wrap(largeread.Wrap)
}

// builder makes the parts, each once.
type builder struct {
	options  options.Options
	version  string
	host     Host
	config   *rest.Config
	log      logr.Logger
	registry *prometheus.Registry
	gatherer prometheus.Gatherer
	kinds    *refresh.Kinds
	watches  *watchhealth.Monitor

	// secretsClient is for all that reads Secrets: its connections keep none of what went through them.
	secretsClient *http.Client

	keys       *keyring.Keyring
	store      *configstate.Store
	chain      *chain.Chain
	patterns   *pattern.Index[workload.Key]
	namespaces namespaces
	// certificate is nil without a webhook of our own.
	certificate serve.Certificate
	drain       *serve.Drain
	// serving are the servers and what they depend on, conditions those of their readiness.
	serving    []starter
	conditions []condition
	// instance names this process in Events.
	instance string
	// events and outbox write Events while this process leads: the first those that are not about workloads. eventClient reads those of an
	// earlier leader.
	events      events.EventRecorder
	outbox      *outbox.Outbox
	eventClient *outbox.Client
	// permissions, applier and configuration are nil without a structured configuration.
	permissions   *permissionCheck
	applier       *refresh.Applier
	configuration refresh.Source
	loop          *leadingLoop
}

func (b *builder) build() (*lifecycle, error) {
	for _, step := range []func() error{b.nameProcess, b.buildState, b.buildWebhook} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	mgr, err := b.buildManager()
	if err != nil {
		return nil, err
	}
	for _, add := range []func(manager.Manager) error{b.buildConfiguration, b.buildWatchReporter, b.buildKeyReporter, b.buildLeadership} {
		if err := add(mgr); err != nil {
			return nil, err
		}
	}
	probes := b.buildProbes()
	if err := b.buildServers(mgr, probes); err != nil {
		return nil, err
	}
	life := &lifecycle{loop: b.loop, probes: probes, drain: b.drain, log: b.log, serving: append([]starter{b.keys, b.store}, b.serving...)}
	if b.options.Webhook.Enabled {
		life.grace = b.options.ShutdownGracePeriod
	}
	if b.configuration != nil {
		life.serving = append(life.serving, b.configuration, b.chain)
	}
	return life, nil
}
