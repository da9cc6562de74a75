package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// publishedLaw judges what the program publishes on custom resources.
type publishedLaw struct {
	*ledger
	passive

	// published has the digest that was written for each content below a proxy, since the digest key changed last.
	published map[string]int
}

func newPublishedLaw(l *ledger) *publishedLaw {
	return &publishedLaw{ledger: l, published: map[string]int{}}
}

func (l *publishedLaw) stored(c world.Commit) {
	switch {
	case l.isKeySecret(c.Key):
		clear(l.published)
	case isReferent(c.Key.Resource.Plural) && l.isProgram(c.Call):
		l.judgePublication(c)
	}
}

// judgePublication judges a write of the program to a custom resource: it is the digest of a proxy, and nothing else.
func (l *publishedLaw) judgePublication(c world.Commit) {
	subject := idOf(c.Key).String()
	l.count("publications")
	if c.Old == nil || c.New == nil || c.Key.Resource.Plural != proxies {
		l.violate(c.At, broken{"scope", subject, "referent"}, "the program sent a %s at %s", c.Call.Verb, l.when(c.At))
		return
	}
	annotation := l.options.Prefix + checksumAnnotation
	if changesMoreThan(annotation, c.Old, c.New) {
		l.violate(c.At, broken{"unharmed", subject, "referent"},
			"the program's %s at %s changed more than its annotation", c.Call.Verb, l.when(c.At))
	}
	n := l.graph.nodes[idOf(c.Key)]
	if !l.graphSeen(c.At) || c.Call.Arrived.Sub(n.movedBelow) < readBefore {
		return
	}
	if n.held != "" && n.movedWithin(l.versionAt(c.Call.Arrived.Add(-readBefore)), c.Version) {
		return // it was written before the program could know
	}
	if n.held != "" {
		l.violate(c.At, broken{"kept", subject, "published-while-held"},
			"the program published a digest at %s, but it is held: %s", l.when(c.At), n.held)
		return
	}
	l.judgeDigest(subject, world.Text(world.Annotations(c.New), annotation), n.below, c.At)
}

// changesMoreThan reports whether a write changes anything beside an annotation.
func changesMoreThan(annotation string, before, after world.Object) bool {
	other := func(name string) bool { return name == annotation }
	return !sameWithout(world.Annotations(before), world.Annotations(after), other) || !equal(world.Labels(before), world.Labels(after)) ||
		!equal(before["spec"], after["spec"]) || !equal(before["status"], after["status"])
}

// graphSeen reports whether the program sees custom resources as they are, and publishes their digests under the present key: all
// faults are over for some time, and so is the last change of the digest key.
func (l *publishedLaw) graphSeen(now time.Time) bool {
	t := &l.faults
	if t.begun.IsZero() || now.Sub(t.begun) <= warmUp || !t.working() || t.restored().After(now) || now.Sub(l.keysChanged) < recovery {
		return false
	}
	return !slices.ContainsFunc(t.spans, func(s *span) bool {
		return !s.outage() && (s.open || s.to.Add(s.recovery()).After(now))
	})
}

// calmWithoutWorkload reports whether there was no fault so far, and no digest key was changed.
func (l *publishedLaw) calmWithoutWorkload(now time.Time) bool {
	return l.faults.never() && l.keyVersion == 0 && !l.faults.begun.IsZero() && now.Sub(l.faults.begun) > warmUp
}

// judgeDigest compares with what was published before: one digest for one content.
func (l *publishedLaw) judgeDigest(subject, digest string, below int, at time.Time) {
	known, seen := l.published[digest]
	if seen && known != below {
		l.violate(at, broken{"current", subject, "published"}, "the digest at %s is one of an earlier content", l.when(at))
		return
	}
	l.published[digest] = below
	for other, content := range l.published {
		if other != digest && content == below {
			l.violate(at, broken{"kept", subject, "published"}, "there is another digest for the same content at %s", l.when(at))
		}
	}
}

// quiet judges what is published when all is quiet.
func (l *publishedLaw) quiet(now time.Time) {
	if !l.calmWithoutWorkload(now) {
		return
	}
	for key, object := range l.graph.objects {
		n := l.graph.nodes[key]
		if key.plural != proxies || n.held != "" || len(n.moved) == 0 || now.Sub(n.moved[len(n.moved)-1].at) < recovery {
			continue
		}
		l.count("publications judged")
		digest := world.Text(world.Annotations(object), l.options.Prefix+checksumAnnotation)
		if digest == "" {
			l.violate(now, broken{"current", key.String(), "not-published"},
				"it has no digest, although it is ready since %s", l.when(n.moved[len(n.moved)-1].at))
			continue
		}
		l.judgeDigest(key.String(), digest, n.below, now)
	}
}
