package annotation_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const referentsKey = annotation.DefaultPrefix + "referents"

func TestReferents(t *testing.T) {
	t.Parallel()
	proxy := reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "my-proxy"}
	other := reference.Ref{Kind: "others.example.org", Name: "o"}
	for name, c := range map[string]struct {
		reason, value string
		onTemplate    bool
		tracked       []reference.Ref
		problems      []string
	}{
		"one":       {reason: "The plain case.", value: "kafkaproxies.kroxylicious.io/my-proxy", tracked: []reference.Ref{proxy}},
		"two times": {reason: "White space and repetitions do not count.", value: " kafkaproxies.kroxylicious.io/my-proxy ,,kafkaproxies.kroxylicious.io/my-proxy", tracked: []reference.Ref{proxy}},
		"unknown resource": {
			reason: "It is tracked, and held: it can be configured later.", value: "others.example.org/o", tracked: []reference.Ref{other},
			problems: []string{`annotation "pod-reloader.cs.sap.com/referents": "others.example.org/o": there is no such resource`},
		},
		"no group": {
			reason: "A resource without a group is none of a CustomResourceDefinition.", value: "kafkaproxies/my-proxy",
			problems: []string{`annotation "pod-reloader.cs.sap.com/referents": item 1 is not tracked: "kafkaproxies/my-proxy": it is not of the form resource.group/name, such as certificates.cert-manager.io/web: correct the name or remove it`},
		},
		"a config object": {
			reason: "ConfigMaps and Secrets have lists of their own.", value: "secret/tls",
			problems: []string{`annotation "pod-reloader.cs.sap.com/referents": item 1 is not tracked: secret has a list of its own: correct the name or remove it`},
		},
		"no object": {
			reason: "The valid rest works.", value: "x,kafkaproxies.kroxylicious.io/my-proxy", tracked: []reference.Ref{proxy},
			problems: []string{`annotation "pod-reloader.cs.sap.com/referents": item 1 is not tracked: "x": it is not of the form resource.group/name, such as certificates.cert-manager.io/web: correct the name or remove it`},
		},
		"on the pod template": {
			reason: "Nothing reads it there.", value: "kafkaproxies.kroxylicious.io/my-proxy", onTemplate: true,
			problems: []string{`annotation "pod-reloader.cs.sap.com/referents" on the pod template has no effect: put it into metadata.annotations of the workload`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := annotation.DefaultKeys()
			dialect := annotation.SAP{Keys: keys, Resource: func(kind reference.Kind) error {
				if kind != proxy.Kind {
					return errors.New("there is no such resource")
				}
				return nil
			}}
			source := annotation.Source{Workload: map[string]string{referentsKey: c.value}}
			if c.onTemplate {
				source.Workload, source.Template = nil, source.Workload
			}
			intent, problems := annotation.Parse(source, dialect)
			assert.Equal(t, c.tracked, intent.Refs(), c.reason)
			assert.Equal(t, !c.onTemplate, intent.Asked, c.reason)
			for _, trigger := range intent.Tracked {
				assert.Zero(t, trigger, "only a modification counts")
			}
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.Message)
			}
			assert.Equal(t, c.problems, texts, c.reason)
		})
	}
}

// found is what is known of custom resources in the tests of Finder.
type found map[reference.Ref]bool

func (f found) Traits(ref reference.Ref) (annotation.Traits, bool) {
	return annotation.Traits{Marked: f[ref]}, f[ref]
}

func (f found) Matching(reference.Kind, []*pattern.Pattern) []string { return nil }

// Err is nil: all are looked at.
func (found) Err() error { return nil }

func (f found) Has(ref reference.Ref) bool { return f[ref] }

func (f found) HasContent(ref reference.Ref) bool { return f[ref] }

func (f found) Refs() []reference.Ref { return slices.Collect(maps.Keys(f)) }

// A workload that names no custom resource runs with those of its owners, and with those that its labels name and that exist.
func TestFoundReferents(t *testing.T) {
	t.Parallel()
	ref := func(name string) reference.Ref { return reference.Ref{Kind: "proxies.example.io", Name: name} }
	configMap := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	for name, c := range map[string]struct {
		reason           string
		owned, labelled  []reference.Ref
		unknown          bool
		exists, recorded found
		tracked          []reference.Ref
		dynamic          bool
		candidates       []reference.Ref
		alsoByAnnotation string
	}{
		"nothing":   {reason: "Most workloads run with none.", exists: found{ref("p"): true}},
		"owned":     {reason: "The owner counts, also while it is not known to exist: it is held then.", owned: []reference.Ref{ref("p")}, tracked: []reference.Ref{ref("p")}, candidates: []reference.Ref{ref("p")}},
		"labelled":  {reason: "The object exists.", labelled: []reference.Ref{ref("p")}, exists: found{ref("p"): true}, tracked: []reference.Ref{ref("p")}, candidates: []reference.Ref{ref("p")}, dynamic: true},
		"no object": {reason: "Many workloads have such a label; its creation is to be seen.", labelled: []reference.Ref{ref("p")}, candidates: []reference.Ref{ref("p")}},
		"deleted":   {reason: "It was there: its return is compared with what the pods have.", labelled: []reference.Ref{ref("p")}, recorded: found{ref("p"): true}, tracked: []reference.Ref{ref("p")}, candidates: []reference.Ref{ref("p")}, dynamic: true},
		"rules unknown": {
			reason: "No configuration has been read: what is recorded stays.", unknown: true,
			recorded: found{ref("p"): true, configMap: true}, tracked: []reference.Ref{ref("p")}, dynamic: true,
		},
		"named, too": {
			reason: "The annotation alone decides whether it is tracked.", labelled: []reference.Ref{ref("p")}, alsoByAnnotation: "proxies.example.io/p",
			exists: found{ref("p"): true}, tracked: []reference.Ref{ref("p")}, candidates: []reference.Ref{ref("p")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := annotation.DefaultKeys()
			labels, owners := map[string]string{"app": "p"}, []reference.Owner{{Group: "example.io", Kind: "Proxy", Name: "p"}}
			dialect := annotation.SAP{Keys: keys, Workloads: func(l map[string]string, o []reference.Owner) (owned, labelled []reference.Ref, known bool) {
				assert.Equal(t, labels, l)
				assert.Equal(t, owners, o)
				return c.owned, c.labelled, !c.unknown
			}}
			source := annotation.Source{Labels: labels, Owners: owners}
			if c.alsoByAnnotation != "" {
				source.Workload = map[string]string{referentsKey: c.alsoByAnnotation}
			}
			intent, problems := annotation.Parse(source, dialect)
			assert.Empty(t, problems)
			assert.Equal(t, c.candidates, intent.Candidates(), c.reason)
			intent, problems = annotation.Resolve(intent, c.exists, c.recorded, nil)
			assert.Empty(t, problems)
			assert.Equal(t, c.tracked, intent.Refs(), c.reason)
			assert.Equal(t, len(c.tracked) > 0, intent.Asked, c.reason)
			assert.Equal(t, c.dynamic, intent.Dynamic, c.reason)
			for _, trigger := range intent.Tracked {
				assert.Zero(t, trigger, "only a modification counts")
			}
		})
	}
}

func TestALongListOfReferentsIsBounded(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	var value strings.Builder
	for i := range 3 * reference.MaxTracked {
		value.WriteString("a.b/" + strings.Repeat("a", i%200+1) + strings.Repeat("b", i/200+1) + ",")
	}
	intent, problems := annotation.Parse(annotation.Source{Workload: map[string]string{referentsKey: value.String()}}, annotation.SAP{Keys: keys})
	assert.Len(t, intent.Tracked, reference.MaxTracked)
	assert.NotEmpty(t, problems)
}
