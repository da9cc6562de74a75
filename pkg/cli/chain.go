package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// chained are the custom resources of a configuration, and its kinds of workloads.
type chained struct {
	kinds workload.Kinds
	*chain.Chain
}

// chainLimit is how long a command waits for the custom resources of the configuration.
const chainLimit = 30 * time.Second

var errNoConfiguration = errors.New("name the configuration of the installation with --config")

// readChain reads the custom resources of the configuration once, with the permissions of the user. What it cannot read, or not in time,
// is held with the reason. Call stop in the end.
func readChain(ctx context.Context, config *rest.Config, s options.Selection, ring digest.Ring) (c chained, stop func(), err error) {
	if s.Configuration.IsZero() {
		return chained{}, nil, errNoConfiguration
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return chained{}, nil, err
	}
	found, err := refresh.Read(ctx, s.Configuration, client)
	if err != nil {
		return chained{}, nil, err
	}
	store, err := configstate.New(configstate.Options{Config: config, Ring: func() digest.Ring { return ring }, Log: logr.Discard()})
	if err != nil {
		return chained{}, nil, err
	}
	c = chained{s.Kinds.Override(found.WorkloadKinds...), chain.New(chain.Options{
		Client: client, Config: liveConfig{store}, Ring: func() digest.Ring { return ring },
		Namespaces: s.Scope.Namespaces, Without: s.Unhandled(), Annotation: s.Keys.Checksum, Log: logr.Discard(),
	})}
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Start(running) // it ends with its context, without an error
	}()
	stop = func() {
		cancel()
		<-done
	}
	c.Configure(found.Referents)
	waiting, cancelWait := context.WithTimeout(ctx, chainLimit)
	defer cancelWait()
	if err := c.WaitForSync(waiting); err != nil && ctx.Err() != nil {
		stop()
		return chained{}, nil, fmt.Errorf("read the custom resources of the configuration: %w", err)
	}
	return c, stop, nil
}

// liveConfig reads past the caches of a Store, which a command does not fill.
type liveConfig struct{ *configstate.Store }

// ReadIfChanged is ReadLive.
func (l liveConfig) ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return l.ReadLive(ctx, namespace, refs)
}
