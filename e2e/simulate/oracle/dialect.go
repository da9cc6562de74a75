package oracle

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The second dialect is that of Stakater's Reloader. What a workload tracks by it depends on the annotations of the workload, on
// what its pod spec references, and on annotations of the config objects.

// otherDomain is in the keys of its annotations.
const otherDomain = "reloader.stakater.com/"

// triggers says which changes of an object restart a workload, besides modifications.
type triggers struct {
	created, deleted bool
	// missing means that its deletion does although the pods cannot start without it.
	missing bool
	// appears means that no name is in the annotations: the object is tracked from the moment it exists.
	appears bool
}

// named reports whether the creation of an object that the annotations name restarts a workload.
func (t triggers) named() bool { return t.created && !t.appears }

// traits are what a config object says about its use.
type traits struct{ ignored, marked bool }

// hasOtherDialect reports whether there are annotations of the second dialect that are about what is tracked.
func hasOtherDialect(annotations world.Object) bool {
	for name := range annotations {
		if strings.Contains(name, otherDomain) && !slices.Contains(otherThanTracked(), name) {
			return true
		}
	}
	return false
}

// otherThanTracked are the keys of the second dialect that are about something else than what is tracked.
func otherThanTracked() []string {
	return []string{sourceAnnotation, pausePeriod, pausedAt, rolloutStrategy}
}

// otherKeys are the names of the annotations on workloads about one kind of config objects.
type otherKeys struct{ reload, auto, exclude string }

func otherKeysOf(plural string) otherKeys {
	kind := strings.TrimSuffix(plural, "s")
	return otherKeys{kind + "." + otherDomain + "reload", kind + "." + otherDomain + "auto", plural + ".exclude." + otherDomain + "reload"}
}

const otherAuto, otherSearch = otherDomain + "auto", otherDomain + "search"

// otherKeysOfAll are all keys on workloads that the oracle knows.
func otherKeysOfAll() []string {
	known := []string{otherAuto, otherSearch, pausePeriod, pausedAt, rolloutStrategy}
	for _, plural := range []string{configMapList, secretList} {
		k := otherKeysOf(plural)
		known = append(known, k.reload, k.auto, k.exclude)
	}
	return known
}

// foreignKeys reports whether there are annotations of the second dialect that the oracle does not know.
func foreignKeys(annotations world.Object) bool {
	known := otherKeysOfAll()
	for name := range annotations {
		if strings.Contains(name, otherDomain) && !slices.Contains(known, name) {
			return true
		}
	}
	return false
}

// other returns what a workload tracks by the second dialect, and whether it uses it.
func (l *configLog) other(w *workload, object world.Object) (tracked map[ref]triggers, uses bool) {
	own := world.Annotations(object)
	template := world.Annotations(world.Section(object, world.PodPath(w.id.plural)...))
	if !l.options.AutoReloadAll && !hasOtherDialect(own) && !hasOtherDialect(template) {
		return nil, false
	}
	tracked = map[ref]triggers{}
	for _, plural := range []string{configMapList, secretList} {
		if l.options.Hidden.fromOther(plural) {
			continue
		}
		excluded := world.Items(world.Text(own, otherKeysOf(plural).exclude))
		for name, by := range l.otherNames(w, plural, l.otherSource(w, plural, object), excluded) {
			tracked[ref{plural, name}] = by
		}
	}
	return tracked, true
}

// otherSource returns the annotations that say what is wanted of one kind: the workload's, or the pod template's where it has none.
func (l *configLog) otherSource(w *workload, plural string, object world.Object) world.Object {
	own, keys := world.Annotations(object), otherKeysOf(plural)
	for _, key := range []string{keys.reload, otherAuto, keys.auto, otherSearch} {
		if _, ok := own[key]; ok {
			return own
		}
	}
	return world.Annotations(world.Section(object, world.PodPath(w.id.plural)...))
}

// otherNames returns the names of one kind that are tracked, with what restarts the workload besides modifications.
func (l *configLog) otherNames(w *workload, plural string, from world.Object, excluded []string) map[string]triggers {
	keys := otherKeysOf(plural)
	if isBool(from, otherAuto, false) {
		return nil
	}
	found := map[string]triggers{}
	by := triggers{created: l.options.ReloadOnCreate, deleted: l.options.ReloadOnDelete, missing: l.options.ReloadOnDelete}
	for _, name := range l.selected(w, plural, from) {
		found[name] = triggers{created: by.created, deleted: by.deleted, missing: by.missing, appears: by.created}
	}
	if l.isAuto(from, keys) {
		for r := range w.needs {
			if r.plural == plural {
				found[r.name] = by
			}
		}
	}
	for _, item := range world.Items(world.Text(from, keys.reload)) {
		if isName(item) {
			found[item] = by
		}
	}
	maps.DeleteFunc(found, func(name string, _ triggers) bool {
		return slices.Contains(excluded, name) || l.traits[id{plural, w.id.namespace, name}].ignored
	})
	return found
}

// selected returns the names of one kind that an expression or the mark selects.
func (l *configLog) selected(w *workload, plural string, from world.Object) []string {
	var found []string
	for r := range w.needs {
		if r.plural == plural && world.Text(from, otherSearch) == "true" && l.isMarked(w, r) {
			found = append(found, r.name)
		}
	}
	for _, item := range world.Items(world.Text(from, otherKeysOf(plural).reload)) {
		if !isName(item) {
			found = append(found, l.matching(w, plural, item)...)
		}
	}
	return found
}

// isName reports whether an item of a list means one name.
func isName(item string) bool { return regexp.QuoteMeta(item) == item }

// isAuto reports whether all objects of a kind are tracked that a pod spec references.
func (l *rules) isAuto(from world.Object, keys otherKeys) bool {
	unset := world.Text(from, otherAuto) == "" && world.Text(from, keys.auto) == ""
	return isBool(from, otherAuto, true) || isBool(from, keys.auto, true) || l.options.AutoReloadAll && unset
}

// isMarked reports whether an object has the mark. One that is absent keeps what it had.
func (l *configLog) isMarked(w *workload, r ref) bool {
	is, exists := l.traits[id{r.plural, w.id.namespace, r.name}]
	if !exists {
		return l.trackedBefore(w, r)
	}
	return is.marked
}

// trackedBefore reports whether a workload has tracked an absent object. Where deletions count, so does what its pods were started with,
// although the object was hidden when it was deleted: an absent one has no annotations.
func (l *configLog) trackedBefore(w *workload, r ref) bool {
	_, tracked := w.triggers[r]
	was, dropped := w.dropped[r]
	return tracked || l.options.ReloadOnDelete && dropped && w.last() != nil && w.last().version < was.version
}

// matching returns the names that an expression matches as a whole: of objects that exist, and of absent ones that were tracked.
func (l *configLog) matching(w *workload, plural, expression string) []string {
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return nil
	}
	candidates := map[string]bool{}
	for key := range l.traits {
		candidates[key.name] = candidates[key.name] || key.plural == plural && key.namespace == w.id.namespace
	}
	for _, r := range slices.Concat(w.refs, slices.Collect(maps.Keys(w.dropped))) {
		if _, exists := l.traits[id{plural, w.id.namespace, r.name}]; r.plural == plural && !exists && l.trackedBefore(w, r) {
			candidates[r.name] = true
		}
	}
	maps.DeleteFunc(candidates, func(name string, is bool) bool { return !is || !compiled.MatchString(name) })
	return slices.Collect(maps.Keys(candidates))
}

// isBool reports whether an annotation says true or false in one of the usual ways.
func isBool(annotations world.Object, key string, want bool) bool {
	value, err := strconv.ParseBool(world.Text(annotations, key))
	return err == nil && value == want
}

// asks returns what a workload tracks in both dialects together, sorted, with what restarts it.
func (l *configLog) asks(w *workload, object world.Object) (refs []ref, by map[ref]triggers) {
	by, uses := l.other(w, object)
	w.dynamic = uses
	if by == nil {
		by = map[ref]triggers{}
	}
	for _, r := range listed(world.Annotations(object), l.options.Prefix) {
		if !l.options.Hidden.fromAll(r.plural) {
			by[r] = triggers{created: true, deleted: true, missing: by[r].missing}
		}
	}
	for _, r := range referents(world.Annotations(object), l.options.Prefix) {
		by[r] = triggers{}
	}
	return slices.SortedFunc(maps.Keys(by), compareRefs), by
}

// commitTraits records what a config object says about its use, and of what workloads track then.
func (l *ledger) commitTraits(c world.Commit) {
	key := idOf(c.Key)
	before, existed := l.traits[key]
	now := l.traitsOf(c.New)
	if c.New == nil {
		delete(l.traits, key)
	} else {
		l.traits[key] = now
	}
	if before == now && existed == (c.New != nil) {
		return
	}
	for _, w := range l.all {
		if !w.gone && w.dynamic && w.id.namespace == key.namespace {
			l.track(w, w.object, c, false)
			l.readScope(w, c.At, c.Version)
		}
	}
}
