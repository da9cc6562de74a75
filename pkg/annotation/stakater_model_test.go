package annotation_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// cluster is what a test knows of the config objects of one namespace.
type cluster = annotation.Listed

// recorded is a Record that has some Refs, and others as absent; without names it is a compact one.
type recorded struct {
	refs, absent []reference.Ref
	compact      bool
}

func (r recorded) Has(ref reference.Ref) bool {
	return r.HasContent(ref) || slices.Contains(r.absent, ref)
}

func (r recorded) HasContent(ref reference.Ref) bool { return slices.Contains(r.refs, ref) }

func (r recorded) Refs() []reference.Ref {
	if r.compact {
		return nil
	}
	return append(slices.Clone(r.refs), r.absent...)
}

// situation is one combination of annotations, each "true", "false", "garbage" or absent (""), on a ConfigMap called app and
// a workload.
type situation struct {
	auto, typed, named, search, exclude string
	match, ignore                       string
	referenced, global                  bool
}

// tracked is the model: the order of decision, written down as it is specified and without the code that is tested.
func (s situation) tracked() bool {
	switch {
	case s.ignore == "true":
		return false
	case s.exclude == "true":
		return false
	case s.auto == "false": // though Reloader itself lets a list fire
		return false
	case s.auto == "true" && s.referenced:
		return true
	case s.typed == "true" && s.referenced:
		return true
	case s.named == "true":
		return true
	case s.search == "true" && s.match == "true" && s.referenced:
		return true
	case s.global && s.auto == "" && s.typed == "" && s.referenced:
		return true
	}
	return false
}

// problems is how many of the annotations are wrong and looked at.
func (s situation) problems() int {
	wrong := 0
	if s.exclude == "garbage" {
		wrong++
	}
	if s.auto == "garbage" {
		wrong++
	}
	if s.auto == "false" {
		return wrong
	}
	for _, value := range []string{s.typed, s.named, s.search} {
		if value == "garbage" {
			wrong++
		}
	}
	return wrong
}

func (s situation) annotations() map[string]string {
	all := map[string]string{}
	put := func(key, value string, texts map[string]string) {
		if text, ok := texts[value]; ok {
			all[key] = text
		}
	}
	boolean := map[string]string{"true": "true", "false": "false", "garbage": "yes"}
	put("reloader.stakater.com/auto", s.auto, boolean)
	put("configmap.reloader.stakater.com/auto", s.typed, boolean)
	put("reloader.stakater.com/search", s.search, boolean)
	put("configmap.reloader.stakater.com/reload", s.named, map[string]string{"true": "other, a.p", "false": "apple,ap", "garbage": "a("})
	put("configmaps.exclude.reloader.stakater.com/reload", s.exclude, map[string]string{"true": "x, app", "false": "ap", "garbage": "App"})
	return all
}

func situations() []situation {
	values := []string{"true", "false", "", "garbage"}
	var all []situation
	for _, auto := range values {
		for _, typed := range values {
			for _, named := range values {
				for _, search := range values {
					for _, exclude := range values {
						for _, object := range [][2]string{{"true", ""}, {"", "true"}, {"", ""}, {"true", "true"}, {"false", "false"}, {"yes", "yes"}} {
							for bits := range 4 {
								all = append(all, situation{
									auto: auto, typed: typed, named: named, search: search, exclude: exclude,
									match: object[0], ignore: object[1], referenced: bits&1 != 0, global: bits&2 != 0,
								})
							}
						}
					}
				}
			}
		}
	}
	return all
}

// TestStakaterAgreesWithModel checks every combination, on the workload and on the template, against the model.
func TestStakaterAgreesWithModel(t *testing.T) {
	t.Parallel()
	keys := annotation.NewStakaterKeys()
	app := configMap("app")
	var cache pattern.Cache
	for _, s := range situations() {
		dialect := annotation.Stakater{Keys: keys, AutoReloadAll: s.global, Patterns: &cache}
		objects := cluster{app: dialect.Traits(reference.ConfigMap, nil, map[string]string{keys.Match: s.match, keys.Ignore: s.ignore}), secret("app"): {}}
		src := annotation.Source{Workload: s.annotations()}
		if s.referenced {
			src.References = []reference.Reference{{Ref: app}}
		}
		intent, problems := annotation.Parse(src, dialect)
		resolved, more := annotation.Resolve(intent, objects, recorded{}, src.References)
		_, tracked := resolved.Tracked[app]
		_, otherKind := resolved.Tracked[secret("app")]
		moved, _ := annotation.Resolve(fallback(src, dialect, keys.ConfigMap.Exclude), objects, recorded{}, src.References)
		switch {
		case tracked != s.tracked():
			t.Fatalf("%+v: tracked is %t", s, tracked)
		case otherKind:
			t.Fatalf("%+v: the Secret of that name is tracked: %t", s, otherKind)
		case len(problems) != s.problems() || len(more) > 0:
			t.Fatalf("%+v: %v", s, problems)
		case tracked && (!resolved.Asked || !resolved.Dynamic):
			t.Fatalf("%+v: what is tracked is asked for, and depends on objects", s)
		case !maps.Equal(resolved.Tracked, moved.Tracked):
			t.Fatalf("%+v: on the template: %v", s, moved.Tracked)
		}
	}
}

// fallback parses with all annotations but one moved to the template.
func fallback(src annotation.Source, dialect annotation.Dialect, stays string) annotation.Intent {
	moved := annotation.Source{Workload: map[string]string{}, Template: map[string]string{}, References: src.References}
	for key, value := range src.Workload {
		if key == stays {
			moved.Workload[key] = value
		} else {
			moved.Template[key] = value
		}
	}
	intent, _ := annotation.Parse(moved, dialect)
	return intent
}
