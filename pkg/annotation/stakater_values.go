package annotation

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// setting is the value of a boolean annotation.
type setting int

const (
	// absent is also an empty value, as in Reloader.
	absent setting = iota
	enabled
	disabled
	// unknown is neither true nor false. It enables nothing, and unlike an explicit false it does not switch off other annotations. As in
	// Reloader, --auto-reload-all does not apply to a workload that has it.
	unknown
)

// asks reports whether an author wants something, if only in a way that cannot be read.
func asks(s setting) bool { return s == enabled || s == unknown }

// boolean reads an annotation as Reloader does: 1, t, TRUE and the like are true.
func (r *stakaterReading) boolean(from map[string]string, key string) setting {
	value, ok := from[key]
	if !ok {
		return absent
	}
	if value == "" {
		r.report(`annotation %q is empty and enables nothing: write "true" or "false", or remove it`, key)
		return absent
	}
	switch on, err := strconv.ParseBool(value); {
	case err != nil:
		r.report(`annotation %q: %s is neither true nor false and enables nothing: write "true" or "false"`, key, reference.Quote(value))
		return unknown
	case on:
		return enabled
	default:
		return disabled
	}
}

// search reads the annotation that asks for marked objects. Reloader takes exactly "true"; other values are none.
func (r *stakaterReading) search(from map[string]string) setting {
	switch value, ok := from[r.Keys.Search]; {
	case !ok, value == "false":
		return absent
	case value == "true":
		return enabled
	default:
		r.report(`annotation %q: %s enables nothing: write "true" or "false"`, r.Keys.Search, reference.Quote(value))
		return unknown
	}
}

// misplaced reports annotations that their author put where nothing reads them.
func (r *stakaterReading) misplaced() {
	shared := false
	for _, kind := range r.Kinds() {
		keys := r.Keys.Of(kind)
		if _, fallback := r.annotationsFor(kind); fallback {
			shared = true
		} else {
			r.overridden(keys.Reload, keys.Auto)
			r.emptyList(kind)
		}
		if _, ok := r.source.Template[keys.Exclude]; ok && r.source.Workload[keys.Exclude] == "" {
			r.addProblems(onTemplate(keys.Exclude))
		}
	}
	if !shared {
		r.overridden(r.Keys.Auto, r.Keys.Search)
	}
	for _, key := range [...]string{r.Keys.Match, r.Keys.Ignore} {
		if r.source.has(key) {
			r.report("annotation %q on a workload has no effect: put it on the ConfigMap, Secret or SecretProviderClass", key)
		}
	}
}

// emptyList reports a list without items that is the only reason why the annotations of the pod template do not count for a handled kind.
func (r *stakaterReading) emptyList(kind reference.Kind) {
	key := r.Keys.Of(kind).Reload
	value, alone := r.source.Workload[key]
	hides := false
	for _, other := range r.selecting(kind) {
		_, onWorkload := r.source.Workload[other]
		_, onTemplate := r.source.Template[other]
		alone, hides = alone && (other == key || !onWorkload), hides || onTemplate
	}
	if alone && hides && !longerThan(value, 0) && !slices.Contains(r.Without, kind) {
		r.report("annotation %q is empty and hides those of the pod template: list names, or remove it", key)
	}
}

// overridden reports annotations of the pod template that are not read since the workload has others.
func (r *stakaterReading) overridden(keys ...string) {
	for _, key := range keys {
		_, onTemplate := r.source.Template[key]
		if _, onWorkload := r.source.Workload[key]; onTemplate && !onWorkload {
			r.report("annotation %q on the pod template has no effect beside those of the workload: put it into metadata.annotations of the workload", key)
		}
	}
}

const (
	// maxMisspelt is how many misspelt keys are reported.
	maxMisspelt = 5
	// maxOthers is how many keys are compared with those that there are: a workload may have thousands.
	maxOthers = 50
)

// misspelt reports annotations of Reloader's domain that are nearly one of the keys.
func (r *stakaterReading) misspelt() {
	kinds := r.Kinds()
	own := r.Keys.onWorkload(kinds)
	var others []string
	for _, from := range [...]map[string]string{r.source.Workload, r.source.Template} {
		for key := range from {
			if strings.Contains(key, stakaterDomain+"/") && !contains(own, key) {
				others = append(others, key)
			}
		}
	}
	if len(others) == 0 {
		return
	}
	others = distinct(others)
	reported := 0
	for _, key := range others[:min(len(others), maxOthers)] {
		if right := likelyKeys(key, own, kinds); len(right) > 0 && reported < maxMisspelt {
			r.report("annotation %q has no effect: use %s", key, `"`+strings.Join(right, `" or "`)+`"`)
			reported++
		}
	}
}

// likelyKeys returns the key that is nearly another one, or those that another one is without their first label, such as configmap. One
// that has this name by default has another one in this installation: it is not meant for it.
func likelyKeys(other string, own iter.Seq[string], kinds []reference.Kind) []string {
	if near := likelyKey(other, own); near != "" {
		return []string{near}
	}
	if byDefault := NewStakaterKeys(); contains(byDefault.onWorkload(kinds), other) {
		return nil
	}
	var longer []string
	for key := range own {
		if label, ok := strings.CutSuffix(key, "."+other); ok && !strings.Contains(label, ".") {
			longer = append(longer, key)
		}
	}
	return longer
}

// likelyKey returns the key that is nearly another one, or an empty text. One that differs in no letter goes first.
func likelyKey(other string, own iter.Seq[string]) string {
	near, text := "", normalizedKey(other)
	for key := range own {
		switch right := normalizedKey(key); {
		case text == right:
			return key
		case near == "" && isMisspelled(text, right):
			near = key
		}
	}
	return near
}

// contains reports whether a sequence has a key. Each reading of a workload asks it, for each annotation: it makes no slice.
func contains(keys iter.Seq[string], key string) bool {
	for k := range keys {
		if k == key {
			return true
		}
	}
	return false
}

// unhandled reports annotations for SecretProviderClasses where these are not tracked.
func (r *stakaterReading) unhandled() {
	if r.SecretProviderClasses {
		return
	}
	keys := r.Keys.SecretProviderClass
	for _, key := range [...]string{keys.Auto, keys.Reload, keys.Exclude} {
		if r.source.has(key) {
			r.report("annotation %q has no effect: this installation does not handle SecretProviderClasses (--enable-csi-integration)", key)
		}
	}
}

// normalizedKey returns what the likely misspellings of a key have in common, in each label of its prefix and in its name.
func normalizedKey(key string) string {
	prefix, name, _ := strings.Cut(key, "/")
	labels := strings.Split(prefix, ".")
	for i, label := range labels {
		labels[i] = normalized(label)
	}
	return strings.Join(labels, ".") + "/" + normalized(name)
}
