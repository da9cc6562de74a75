package poke

import (
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// AnyCurrent is the [Request].Digest of a client that wants the current configuration, whatever it is.
const AnyCurrent = digest.AnyCurrent

// The types of Request and Result, so that a client needs no other package of this module.
type (
	// Keys are the names of the annotations of an installation.
	Keys = annotation.Keys
	// Ref is a config object in the namespace of the workload, such as Ref{Kind: "configmap", Name: "app"}.
	Ref = reference.Ref
	// Kind is "configmap", "secret", "secretproviderclass", or the name and the group of a custom resource.
	Kind = reference.Kind
	// LastReload explains the last reload of a workload.
	LastReload = record.LastReload
	// Change is what has happened to one config object.
	Change = record.Change
	// Past is a reload before the last one.
	Past = record.Past
	// Template is a pod template that a reload has replaced.
	Template = record.Template
)

// NewKeys returns the annotations of an installation with --annotation-prefix.
func NewKeys(prefix string) (Keys, error) { return annotation.NewKeys(prefix) }
