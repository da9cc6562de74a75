package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// judgePublication judges a write of the program to a custom resource: it is the digest of a proxy, and nothing else.
func (o *Oracle) judgePublication(c world.Commit) {
	subject := idOf(c.Key).String()
	o.count("publications")
	if c.Old == nil || c.New == nil || c.Key.Resource.Plural != proxies {
		o.violate(c.At, broken{"scope", subject, "referent"}, "the program sent a %s at %s", c.Call.Verb, o.when(c.At))
		return
	}
	mark := o.options.Prefix + checksumMark
	if changesMoreThan(mark, c.Old, c.New) {
		o.violate(c.At, broken{"unharmed", subject, "referent"}, "the program's %s at %s changed more than its annotation", c.Call.Verb, o.when(c.At))
	}
	n := o.graph.nodes[idOf(c.Key)]
	if !o.graphSeen(c.At) || c.Call.Arrived.Sub(n.movedBelow) < readBefore {
		return
	}
	if n.held != "" && n.movedWithin(o.versionAt(c.Call.Arrived.Add(-readBefore)), c.Version) {
		return // it was written before the program could know
	}
	if n.held != "" {
		o.violate(c.At, broken{"kept", subject, "published-while-held"}, "the program published a digest at %s, but it is held: %s", o.when(c.At), n.held)
		return
	}
	o.judgeDigest(subject, text(annotationsOf(c.New), mark), n.below, c.At)
}

// changesMoreThan reports whether a write changes anything beside an annotation.
func changesMoreThan(mark string, before, after world.Object) bool {
	other := func(name string) bool { return name == mark }
	return !sameWithout(annotationsOf(before), annotationsOf(after), other) || !equal(labelsOf(before), labelsOf(after)) ||
		!equal(before["spec"], after["spec"]) || !equal(before["status"], after["status"])
}

// graphSeen reports whether the program sees custom resources as they are, and publishes their digests under the present key: all
// faults are over for some time, and so is the last change of the digest key.
func (o *Oracle) graphSeen(now time.Time) bool {
	t := &o.faults
	if t.begun.IsZero() || now.Sub(t.begun) <= warmUp || !t.working() || t.restored().After(now) || now.Sub(o.keysChanged) < recovery {
		return false
	}
	return !slices.ContainsFunc(t.spans, func(s *span) bool {
		return !s.outage() && (s.open || s.to.Add(s.recovery()).After(now))
	})
}

// calmWithoutWorkload reports whether there was no fault so far, and no digest key was changed.
func (o *Oracle) calmWithoutWorkload(now time.Time) bool {
	return o.faults.never() && o.jobs.keyChanged == 0 && !o.faults.begun.IsZero() && now.Sub(o.faults.begun) > warmUp
}

// judgeDigest compares with what was published before: one digest for one content.
func (o *Oracle) judgeDigest(subject, digest string, below int, at time.Time) {
	known, seen := o.graph.published[digest]
	if seen && known != below {
		o.violate(at, broken{"current", subject, "published"}, "the digest at %s is one of an earlier content", o.when(at))
		return
	}
	o.graph.published[digest] = below
	for other, content := range o.graph.published {
		if other != digest && content == below {
			o.violate(at, broken{"kept", subject, "published"}, "there is another digest for the same content at %s", o.when(at))
		}
	}
}

// judgePublished judges what is published when all is quiet.
func (o *Oracle) judgePublished(now time.Time) {
	if !o.calmWithoutWorkload(now) {
		return
	}
	for key, object := range o.graph.objects {
		n := o.graph.nodes[key]
		if key.plural != proxies || n.held != "" || len(n.moved) == 0 || now.Sub(n.moved[len(n.moved)-1].at) < recovery {
			continue
		}
		o.count("publications judged")
		digest := text(annotationsOf(object), o.options.Prefix+checksumMark)
		if digest == "" {
			o.violate(now, broken{"current", key.String(), "not-published"}, "it has no digest, although it is ready since %s", o.when(n.moved[len(n.moved)-1].at))
			continue
		}
		o.judgeDigest(key.String(), digest, n.below, now)
	}
}
