package app

import (
	"fmt"

	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
)

// buildChain makes what knows the state of custom resources. Without a structured configuration there can be none.
func (b *builder) buildChain() (*chain.Chain, error) {
	o := chain.Options{
		Config: b.store, Ring: b.keys.Ring, Namespaces: b.options.Selection.Scope.Namespaces,
		Annotation: b.options.Selection.Keys.Checksum, Now: b.host.Now, Log: b.log.WithName("chain"),
	}
	if b.options.Selection.Configuration.IsZero() {
		return chain.New(o), nil
	}
	client, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("make a client for custom resources: %w", err)
	}
	o.Client = client
	c := chain.New(o)
	if err := c.Register(b.registry); err != nil {
		return nil, fmt.Errorf("register the metrics of custom resources: %w", err)
	}
	b.store.OnEvent(c.ConfigChanged)
	b.keys.OnChange(c.KeysChanged)
	return c, nil
}
