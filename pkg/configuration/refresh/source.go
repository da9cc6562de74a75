package refresh

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
)

// Source follows a configuration and offers its content: once at first, and whenever it may have changed.
type Source interface {
	// Start runs until the context ends.
	Start(ctx context.Context) error
}

// SourceOptions are what a Source works with. All fields but Pod are required.
type SourceOptions struct {
	Location configuration.Location
	// Client reads ConfigMaps.
	Client dynamic.Interface
	// Pod is what Events about a file regard: a file is nothing that the cluster knows. Nil: such Events are not sent.
	Pod *corev1.ObjectReference
	// Offer gets the content; it is called by one goroutine at a time, and may block.
	Offer func(Content)
	Log   logr.Logger
}

// NewSource returns what follows a location.
func NewSource(options SourceOptions) (Source, error) {
	if options.Location.Path != "" {
		return newFile(options), nil
	}
	return newConfigMap(options)
}

// Read reads a configuration once. The error says that it is missing or all that is wrong with it, and where it is.
func Read(ctx context.Context, location configuration.Location, client dynamic.Interface) (configuration.Configuration, error) {
	var content Content
	if location.Path != "" {
		content = readFile(location.Path)
	} else {
		content = getConfigMap(ctx, location, client)
	}
	parsed, _, err := content.configuration()
	if err != nil {
		return configuration.Configuration{}, fmt.Errorf("the configuration in %s: %w", location, err)
	}
	return parsed, nil
}
