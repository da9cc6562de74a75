package tracking

import (
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// workloadChanges takes in what the watches of workloads deliver: it keeps the index up to date, forgets what is gone and queues what is to
// be looked at.
type workloadChanges struct {
	with    Options
	index   *index.Index
	entries *entries
}

// changed is called for each workload that comes, changes or goes; changes that cannot matter are dropped. listed is as in Options.Workloads.
func (c *workloadChanges) changed(of *watched, before, after workload.Summary, listed string) {
	first, current, last := before, after, after
	if last.Kept == nil {
		last = before
	}
	key, gone := last.Key(), isGone(first, current)
	entered := gone && c.index.Has(key)
	if gone {
		// Here, since a standby treats nothing that is queued, and the end of a Job that is left alone queues nothing.
		c.with.State.Forget(key)
		c.with.Backoff.Forget(key)
	}
	before, after = c.ifHandled(before), c.ifHandled(after)
	if entered {
		before = first // it was handled when it was entered
	}
	of.unlessGone(func() {
		seen, readLive := of.takeReadLive(last, before)
		if !matters(before, after) && !readLive {
			c.entries.followBack(seen, after)
			c.listedAgain(key, before, after)
			return
		}
		if after = c.forgetUnhandled(before, after, current); gone || after.Kept == nil {
			c.index.Delete(key) // also where another one has the name: what that tracks is new, and may have changed recently
		}
		if gone {
			c.with.State.Changes.Forget(key) // until now, an event could find it in the index
			seen = before                    // what a live read has recorded is forgotten, too
		}
		if after.Kept == nil {
			c.with.Queue.Add(queue.Workload, key)
			return
		}
		c.born(first, after, listed)
		c.entries.update(key, seen, after, listed)
		c.with.Queue.Add(queue.Workload, key)
	})
}

// listedAgain queues a workload that a listing has brought as it was known, but without our last write: that is lost, or comes later.
func (c *workloadChanges) listedAgain(key workload.Key, before, after workload.Summary) {
	if before.Kept == after.Kept && after.Kept != nil && c.with.State.Writes.IsLacking(key, after.Generation()) {
		c.with.Queue.Add(queue.Workload, key)
	}
}

// matters reports whether a change of a workload, as far as that is handled, can change what is due.
func matters(before, after workload.Summary) bool {
	if before.Kept == nil || after.Kept == nil {
		return before.Kept != nil || after.Kept != nil
	}
	return after.Matters(before)
}

// isGone reports whether a workload exists no more: it was deleted, perhaps with another one of its name since.
func isGone(before, current workload.Summary) bool {
	return before.Kept != nil && (current.Kept == nil || current.UID() != before.UID())
}

// forgetUnhandled forgets what is kept of a workload that is left alone from now on, and returns its version as far as configuration matters
// to it. The watch of config objects does not wait: a change that it has recorded before the Job finished counts.
func (c *workloadChanges) forgetUnhandled(before, after, current workload.Summary) workload.Summary {
	if before.Kept == nil || after.Kept != nil || isGone(before, current) || c.with.State.ForgetUnlessPending(before.Key()) {
		return after
	}
	after = c.ifHandled(current)
	if after.Kept == nil {
		c.with.State.Forget(before.Key())
	}
	return after
}

// born records the creation of a workload whose configuration is to be recorded, and forgets that of one that has a Record. A workload
// of the first listing was there before its kind was watched. It starts with what is found now: an installation restarts nothing, nor does
// a kind that is followed from now on. So does one that is out of scope by its labels. A later listing can replace a workload by another one
// of its name at once.
func (c *workloadChanges) born(before, after workload.Summary, listed string) {
	key, another := after.Key(), before.Kept == nil || before.UID() != after.UID()
	created := another && listed == ""
	if !created && c.with.State.Creations.Version(key) == "" {
		return
	}
	switch recorded := after.Annotations()[c.with.Reader.Keys.ConfigRecord] != ""; {
	case recorded, !c.with.Scope.Object(key.Namespace, after.Labels()):
		c.with.State.Creations.Forget(key)
	case created && c.entries.intent(after).Asked:
		c.with.State.Creations.Created(key, after.ResourceVersion())
	}
}

// ifHandled returns a workload, or none if it is a Job that is left alone: that is not tracked.
func (c *workloadChanges) ifHandled(s workload.Summary) workload.Summary {
	if s.Kept != nil && c.with.Ignores(s, c.with.State.Changes.HasPending(s.Key())) {
		s.Kept = nil
	}
	return s
}
