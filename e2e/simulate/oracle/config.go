package oracle

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// commitConfig takes note of a stored change of a ConfigMap or a Secret.
func (o *Oracle) commitConfig(c world.Commit) {
	if !o.commitManifest(c) {
		o.commitContent(c)
	}
}

// commitContent is commitConfig for what workloads may track, and for the configuration and the keys of the program.
func (o *Oracle) commitContent(c world.Commit) {
	key := idOf(c.Key)
	o.secrets.commit(c)
	if c.Key == o.options.Configuration {
		o.commitConfiguration(c)
	}
	if o.isKeySecret(c.Key) {
		o.commitKey(c)
	}
	o.probes.disturbed = c.At
	before := o.contents.histories[key].now()
	changed := o.contents.commit(c)
	o.revisions[key] = revisionOf(c.New)
	o.commitTraits(c)
	if !changed {
		return
	}
	o.count("content changes")
	defer o.regraph(c)
	r := ref{key.plural, key.name}
	for _, w := range o.all {
		if w.gone || !w.lists(key) {
			continue
		}
		s := w.last()
		adopts := w.needs[r] != optional || !w.triggers[r].created
		if s != nil && before == absent && adopts && o.believes(w, s, r, absent) {
			w.adopt(c.Version, c.Version, c.At, r).precise = !w.triggers[r].created
		}
		o.judgeDue(w, c.At)
	}
}

// commitKey takes note of a lost digest key: what was recorded under it means nothing any more.
func (o *Oracle) commitKey(c world.Commit) {
	before, after := section(c.Old, "data"), section(c.New, "data")
	o.jobs.keyChanged, o.keysChanged = c.Version, c.At
	clear(o.graph.published)
	lost := c.Old != nil && c.New == nil
	for name, value := range before {
		lost = lost || !equal(after[name], value)
	}
	for _, w := range o.all {
		w.requests.allowed++
		w.keyChanged = c.Version
		if lost && !w.gone {
			a := w.adopt(c.Version, c.Version, c.At, ref{})
			a.lost, a.period.waits = true, true
		}
	}
}
