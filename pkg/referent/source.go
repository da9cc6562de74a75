package referent

// Source says what is known of the objects of a resource in a namespace, or in all.
type Source int

// The states of a source.
const (
	SourceUnsynced Source = iota
	SourceSynced
	SourceForbidden
	SourceNotInstalled
	// SourceOtherScope: the objects have namespaces, and the configuration says that they have none; or the other way round.
	SourceOtherScope
	// SourceOutside: other namespaces have sources, and this one has none. It is not set, but follows from those that are.
	SourceOutside
)

// reason is why nodes of the source are held; empty if they are not.
func (s Source) reason() Reason {
	switch s {
	case SourceSynced:
		return ""
	case SourceForbidden, SourceOutside:
		return Forbidden
	case SourceNotInstalled:
		return NotInstalled
	case SourceOtherScope:
		return Invalid
	default:
		return Unsynced
	}
}

// sources are those that were set.
type sources map[sourceKey]sourceState

// sourceState is a Source, and why it is SourceUnsynced; empty if no reason is known.
type sourceState struct {
	Source

	failure string
}

// sourceKey names a source: the empty namespace is all of them.
type sourceKey struct {
	resource  *Resource
	namespace string
}

// set reports whether the source is another one than before.
func (s sources) set(resource *Resource, namespace string, source sourceState) bool {
	at := sourceKey{resource, namespace}
	before, known := s[at]
	s[at] = source
	return !known || before != source
}

// of is what is known of a resource's objects in a namespace.
func (s sources) of(resource *Resource, namespace string) sourceState {
	if resource.builtin {
		return sourceState{Source: SourceSynced}
	}
	if source, ok := s[sourceKey{resource, namespace}]; ok {
		return source
	}
	if source, ok := s[sourceKey{resource: resource}]; ok {
		return source
	}
	for at := range s {
		if at.resource == resource {
			return sourceState{Source: SourceOutside}
		}
	}
	return sourceState{Source: SourceUnsynced}
}

// unwatched is the first namespace that the configuration allows objects to refer from, and in which they are not watched; empty if
// there is none. "*" is all namespaces that are watched.
func (s sources) unwatched(e *edge) string {
	for _, namespace := range e.namespaces {
		if namespace != "*" && s.of(e.from, namespace).Source == SourceOutside {
			return namespace
		}
	}
	return ""
}

// referrers is what is known of the objects that can refer to one in a namespace: the worst of the namespaces that are
// allowed.
func (s sources) referrers(e *edge, namespace string) sourceState {
	worst, known := sourceState{Source: SourceSynced}, false
	for at, source := range s {
		if at.resource == e.from && at.namespace != "" && at.namespace != namespace && e.allows(at.namespace, namespace) {
			worst, known = worse(worst, source), true
		}
	}
	// Where each namespace has a source of its own, there is none for all of them.
	_, everywhere := s[sourceKey{resource: e.from}]
	if known && namespace == "" && !everywhere {
		return worst
	}
	return worse(worst, s.of(e.from, namespace))
}

// worse is the one because of which a node is held; of two such, it is always the same one.
func worse(a, b sourceState) sourceState {
	switch {
	case a.Source == SourceSynced:
		return b
	case b.Source == SourceSynced:
		return a
	case a.Source == b.Source:
		return sourceState{a.Source, max(a.failure, b.failure)}
	case a.Source > b.Source:
		return a
	default:
		return b
	}
}

// unknown are the lists whose objects are not known: keys without a name.
func (s sources) unknown() (lists []Key) {
	for at, source := range s {
		if source.Source != SourceSynced {
			lists = append(lists, at.resource.Key(at.namespace, ""))
		}
	}
	return lists
}
