package referent

// Reason says why a node is held.
type Reason string

// The reasons. The cause of a Hold has it; the nodes above are held because of the cause.
const (
	// Missing: a required object does not exist.
	Missing Reason = "missing"
	// NotReady: a condition of the object does not have the status that the configuration asks for.
	NotReady Reason = "not-ready"
	// Stale: the status is of an earlier generation than the object.
	Stale Reason = "stale"
	// Forbidden: the objects of the resource, or this one, may not be read.
	Forbidden Reason = "forbidden"
	// NotInstalled: the cluster does not serve the resource.
	NotInstalled Reason = "not-installed"
	// Unsynced: the objects of the resource, or this one, have not been read yet.
	Unsynced Reason = "unsynced"
	// Denied: a reference crosses into a namespace that the configuration does not allow.
	Denied Reason = "denied"
	// Invalid: a reference is not the name of an object, or the configuration has the resource in another scope than the cluster.
	Invalid Reason = "invalid"
	// Cycle: the object refers to itself, through others or directly.
	Cycle Reason = "cycle"
	// TooDeep: more than MaxDepth references follow each other.
	TooDeep Reason = "too-deep"
	// TooMany: the namespace has more than MaxNodes nodes or MaxLinks references, or the object more than MaxReferences references.
	TooMany Reason = "too-many"
)

// Reasons returns all reasons, for metrics that have a value for each.
func Reasons() []Reason {
	return []Reason{
		Missing, NotReady, Stale, Forbidden, NotInstalled, Unsynced, Denied, Invalid, Cycle, TooDeep, TooMany,
	}
}

// Hold says why nothing is written for a node.
type Hold struct {
	Reason Reason
	// Node is the cause: the node itself, or one below it.
	Node Key
	// Detail says more of the cause, in words for a message.
	Detail string
	// Lacking is the custom resource whose objects are not known; nil where the reason is about one object.
	Lacking *Resource
}

// equal reports whether both say the same.
func (h *Hold) equal(o *Hold) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.Reason == o.Reason && h.Node == o.Node && h.Detail == o.Detail
}

// String is for a message: secret/tls: missing.
func (h *Hold) String() string {
	text := h.Node.String() + ": " + string(h.Reason)
	if h.Detail != "" {
		text += " (" + h.Detail + ")"
	}
	return text
}
