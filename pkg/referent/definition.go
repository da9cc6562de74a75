package referent

import "k8s.io/apimachinery/pkg/runtime/schema"

// Definition is one resource of the configuration as it was written; Compile checks it.
type Definition struct {
	// ID names the resource in edges of the configuration. It is in no digest.
	ID string
	// GVR is the resource. Objects are read in this version.
	GVR schema.GroupVersionResource
	// ClusterScoped says that its objects have no namespace.
	ClusterScoped bool
	// Ready says when an object can be used.
	Ready ReadyDefinition
	// Self says what of an object itself is in the entries of its parents.
	Self SelfDefinition
	// Refs are references of an object to its children.
	Refs []EdgeDefinition
	// Referrers are references of children to an object of this resource.
	Referrers []EdgeDefinition
	// Checksum is computed (the default), or published: then the annotation is the digest, as another reconciler wrote it.
	Checksum string
	// Algorithm is hmac-sha256 (the default) or crc32, which is that of Kroxylicious.
	Algorithm string
	// Publish writes the digest to the annotation of the object.
	Publish bool
	// Annotation is the key of the annotation; empty is the default that Compile is given.
	Annotation string
	// Workloads says which workloads run with an object, besides those that name it in an annotation.
	Workloads WorkloadsDefinition
}

// EdgeDefinition is a reference from the objects of one resource to those of another.
type EdgeDefinition struct {
	// Resource is the ID at the other end: of the child in Refs ("to"), of the child that refers in Referrers ("from").
	Resource string
	// Name is a JSONPath of names, in the object that refers. It may lead to several.
	Name string
	// Namespace is a JSONPath of the namespace beside each name. Without, and where it leads to nothing, it is that of the
	// object that refers.
	Namespace string
	// Kind, if set, chooses references: those whose field kind, beside the name, is another one do not count. It
	// separates references to ConfigMaps and to Secrets where one field can hold either.
	Kind string
	// Optional says that the child may be absent.
	Optional bool
	// Namespaces may be crossed to: those of the child. "*" is all of them.
	Namespaces []string
}

// ReadyDefinition says when an object can be used. The zero value: always.
type ReadyDefinition struct {
	// ObservedGeneration is a JSONPath: where it leads to less than metadata.generation, or to nothing, the status is stale.
	ObservedGeneration string
	Conditions         []ConditionDefinition
}

// ConditionDefinition is a condition that must have a status.
type ConditionDefinition struct {
	Type string
	// Status is True where it is empty.
	Status string
	// Path is a JSONPath of lists of conditions, each of which must have the condition; status.conditions where it is empty.
	Path string
}

// SelfDefinition says what of an object itself is in the entries of its parents.
type SelfDefinition struct {
	// Rule is content (the default), generation or none. It is empty where there are Fields. With generation, each edit counts, and
	// deletion and creation do.
	Rule string
	// Fields are JSONPaths of the fields that count, instead of a Rule. The digest that Publish writes never does.
	Fields []string
}

// WorkloadsDefinition says which workloads run with an object, besides those that name it.
type WorkloadsDefinition struct {
	// OwnedBy selects workloads that have an owner reference to the object.
	OwnedBy bool
	// OwnerKind is the kind in these owner references. It is needed only where the resource is not a usual plural of it.
	OwnerKind string
	// Selector is a label selector of workloads, in which {name} is the name of the object. One of its labels has it:
	// app.kubernetes.io/instance={name}.
	Selector string
}

// Values of Definition.Checksum, Definition.Algorithm and SelfDefinition.Rule.
const (
	ChecksumComputed  = "computed"
	ChecksumPublished = "published"

	AlgorithmHMAC  = "hmac-sha256"
	AlgorithmCRC32 = "crc32"

	SelfContent    = "content"
	SelfGeneration = "generation"
	SelfNone       = "none"
)

// Bounds of a configuration and of a graph.
const (
	// MaxResources is how many resources a configuration can have.
	MaxResources = 64
	// MaxDepth is how many references can follow each other, in the configuration and from an object on.
	MaxDepth = 16
	// MaxNodes is how many nodes a namespace can have, those included that its objects refer to in other namespaces or in none;
	// beyond, every node in it is held. Other namespaces are not affected.
	MaxNodes = 20_000
	// MaxReferences is how many references one object can have.
	MaxReferences = 1_000
	// MaxLinks is how many references the objects of a namespace can have in total; beyond, every node in it is held. A change below
	// objects that all refer to a thousand others would else take seconds, and whatever else changes would wait for it.
	MaxLinks = 100_000
)
