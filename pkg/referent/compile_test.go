package referent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	compiled := compile(t, kafka()...)
	var names []string
	for _, resource := range compiled.Resources() {
		names = append(names, resource.String())
	}
	assert.Equal(t, []string{
		"services.example.io", "filters.example.io", "clusters.example.io", "proxies.example.io",
	}, names)
	services := compiled.Resources()[0]
	assert.True(t, services.Publish, "the configuration has publish: true")
	assert.Equal(t, annotation, services.Annotation, "the default")
	assert.Empty(t, compile(t).Resources(), "none is a configuration, too")
}

func TestCompileReportsFaultsWithTheirPath(t *testing.T) {
	t.Parallel()
	edge := func(d referent.Definition, e referent.EdgeDefinition) referent.Definition {
		d.Refs = append(d.Refs, e)
		return d
	}
	a := referent.Definition{ID: "a", GVR: gvr("as")}
	global := referent.Definition{ID: "g", GVR: gvr("gs"), ClusterScoped: true}
	change := func(do func(*referent.Definition)) []referent.Definition {
		d := a
		do(&d)
		return []referent.Definition{d, global}
	}
	for name, c := range map[string]struct {
		definitions []referent.Definition
		want        []string
	}{
		"empty": {[]referent.Definition{{}}, []string{
			"referents[0].gvr.group: Required value", "referents[0].gvr.version: Required value", "referents[0].gvr.resource: Required value: e.g. certificates",
			"referents[0].id: Required value",
		}},
		"names": {[]referent.Definition{{ID: "A", GVR: schema.GroupVersionResource{Group: "a_b", Version: "1", Resource: "As"}}}, []string{
			`referents[0].id: Invalid value: "A"`, `gvr.group: Invalid value: "a_b"`, `gvr.version: Invalid value: "1"`, `gvr.resource: Invalid value: "As"`,
		}},
		"id twice":       {[]referent.Definition{a, {ID: "a", GVR: gvr("bs")}}, []string{`referents[1].id: Invalid value: "a": referents[0] has this id already`}},
		"id built in":    {[]referent.Definition{{ID: "secrets", GVR: gvr("bs")}}, []string{`referents[0].id: Invalid value: "secrets": this id is built in`}},
		"resource twice": {[]referent.Definition{a, {ID: "b", GVR: schema.GroupVersionResource{Group: "example.io", Version: "v2", Resource: "as"}}}, []string{`referents[1].gvr: Invalid value: "as.example.io": referents[0] is this resource already`}},
		"dangling id":    {change(func(d *referent.Definition) { *d = edge(*d, referent.EdgeDefinition{Resource: "x", Name: "spec.x"}) }), []string{`referents[0].refs[0].to: Invalid value: "x": no resource has this id`}},
		"no id, no name": {change(func(d *referent.Definition) {
			*d = edge(edge(*d, referent.EdgeDefinition{}), referent.EdgeDefinition{Resource: "a"})
		}), []string{"referents[0].refs[0].to: Required", "referents[0].refs[1].name: Required value: a JSONPath"}},
		"bad JSONPath": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "a", Name: "spec..x"})
		}), []string{`referents[0].refs[0].name: Invalid value: "spec..x": byte 6: recursive descent is not supported`}},
		"namespace elsewhere": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "a", Name: "spec.to[*].name", Namespace: "spec.namespace"})
		}), []string{`referents[0].refs[0].namespace: Invalid value: "spec.namespace": want a field beside the name`}},
		"namespace beside a list": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "a", Name: "names[*]", Namespace: "namespace"})
		}), []string{`referents[0].refs[0].namespace: Invalid value: "namespace": want a field beside the name`}},
		"path to nothing": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "a", Name: "$"})
		}), []string{`referents[0].refs[0].name: Invalid value: "$": names no field`}},
		"namespaces of none": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "g", Name: "spec.name", Namespaces: []string{"b"}})
		}), []string{"referents[0].refs[0].namespaces: Forbidden: it has no effect"}},
		"namespace of none": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "g", Name: "spec.name", Namespace: "spec.namespace"})
		}), []string{"referents[0].refs[0].namespace: Forbidden: \"gs.example.io\" have no namespace"}},
		"namespace missing": {[]referent.Definition{a, edge(global, referent.EdgeDefinition{Resource: "a", Name: "spec.name"})}, []string{`referents[1].refs[0].namespace: Required value: "gs.example.io" have no namespace, but "as.example.io" do`}},
		"namespaces": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "a", Name: "spec.name", Namespaces: []string{"A b", "*"}})
		}), []string{`referents[0].refs[0].namespaces[0]: Invalid value: "A b"`, "referents[0].refs[0].namespaces: Forbidden: it has no effect"}},
		"kind of a text": {change(func(d *referent.Definition) {
			*d = edge(*d, referent.EdgeDefinition{Resource: "a", Name: "spec.names[*]", Kind: "A"})
		}), []string{"referents[0].refs[0].kind: Forbidden: it has no effect"}},
		"referrers": {change(func(d *referent.Definition) {
			d.Referrers = []referent.EdgeDefinition{{Resource: "secrets", Name: "data.x"}, {Resource: "a", Name: "x", Optional: true}}
		}), []string{"referents[0].referrers[0].from: Invalid value: \"secrets\": ConfigMaps and Secrets do not refer", "referents[0].referrers[1].optional: Forbidden"}},
		"self": {change(func(d *referent.Definition) { d.Self = referent.SelfDefinition{Rule: "spec"} }), []string{`referents[0].self: Unsupported value: "spec"`}},
		"self and fields": {change(func(d *referent.Definition) {
			d.Self = referent.SelfDefinition{Rule: "none", Fields: []string{"spec.a"}}
		}), []string{"referents[0].self: Invalid value: \"none\": want either a rule or fields"}},
		"fields": {change(func(d *referent.Definition) {
			d.Self = referent.SelfDefinition{Fields: []string{"spec.a", "", "metadata.resourceVersion", "metadata", "[*]"}}
		}), []string{"referents[0].self.fields[1]: Required", `referents[0].self.fields[2]: Invalid value: "metadata.resourceVersion"`, "fields[3]: Invalid", "fields[4]: Invalid"}},
		"ready": {change(func(d *referent.Definition) {
			d.Ready = referent.ReadyDefinition{ObservedGeneration: "status[*]", Conditions: []referent.ConditionDefinition{{Status: "true", Path: "["}}}
		}), []string{
			`referents[0].ready.observedGeneration: Invalid value: "status[*]": want one field`, "referents[0].ready.conditions[0].type: Required",
			`conditions[0].status: Unsupported value: "true"`, `conditions[0].path: Invalid value: "["`,
		}},
		"checksum":  {change(func(d *referent.Definition) { d.Checksum, d.Algorithm = "x", "md5" }), []string{`referents[0].checksum: Unsupported value: "x"`, `referents[0].algorithm: Unsupported value: "md5"`}},
		"published": {change(func(d *referent.Definition) { d.Checksum, d.Publish, d.Algorithm = "published", true, "crc32" }), []string{"referents[0].publish: Forbidden", "referents[0].algorithm: Forbidden"}},
		"published with refs": {change(func(d *referent.Definition) {
			d.Checksum = "published"
			*d = edge(*d, referent.EdgeDefinition{Resource: "g", Name: "spec.x"})
		}), []string{"referents[0].refs: Forbidden: it has no effect with checksum: published"}},
		"crc32 above HMAC": {change(func(d *referent.Definition) {
			d.Algorithm = "crc32"
			*d = edge(*d, referent.EdgeDefinition{Resource: "g", Name: "spec.x"})
		}), []string{`referents[0].algorithm: Invalid value: "crc32": referents[1] is below it: set algorithm: crc32 or checksum: published there, too`}},
		"annotation":         {change(func(d *referent.Definition) { d.Annotation, d.Publish = "a b", true }), []string{`referents[0].annotation: Invalid value: "a b"`}},
		"annotation, unused": {change(func(d *referent.Definition) { d.Annotation = "a/b" }), []string{"referents[0].annotation: Forbidden: it has no effect without publish: true"}},
		"selector":           {change(func(d *referent.Definition) { d.Workloads.Selector = "a in {name}" }), []string{`referents[0].workloads.selector: Invalid value: "a in {name}"`}},
		"selector of all":    {change(func(d *referent.Definition) { d.Workloads.Selector = "app=web" }), []string{`referents[0].workloads.selector: Invalid value: "app=web": want a label selector that has the name in the value of one label`}},
		"selector of others": {change(func(d *referent.Definition) { d.Workloads.Selector = "app!={name}" }), []string{`referents[0].workloads.selector: Invalid value: "app!={name}"`}},
		"kind of no owner":   {change(func(d *referent.Definition) { d.Workloads.OwnerKind = "A" }), []string{"referents[0].workloads.ownerKind: Forbidden: it has no effect without ownedBy: true"}},
		"each referrer": {change(func(d *referent.Definition) {
			d.Referrers = []referent.EdgeDefinition{{Resource: "x", Name: "spec.x"}, {Resource: "secrets", Name: "spec.x"}, {Resource: "y", Name: "spec.x"}}
		}), []string{
			`referents[0].referrers[0].from: Invalid value: "x"`, `referents[0].referrers[1].from: Invalid value: "secrets"`,
			`referents[0].referrers[2].from: Invalid value: "y"`,
		}},
		"too deep":      {levels(referent.MaxDepth, false), []string{`referents[0]: Invalid value: "l0": 17 references follow each other: the limit is 16`}},
		"a depth of 60": {levels(60, true), []string{`the limit is 16`}},
		"too many":      {make([]referent.Definition, 100_000), []string{"referents: Too many: 100000: must have at most 64 items"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled, faults := referent.Compile(field.NewPath("referents"), c.definitions, annotation)
			assert.Nil(t, compiled)
			require.NotEmpty(t, faults)
			text := faults.ToAggregate().Error()
			for _, want := range c.want {
				assert.Contains(t, text, want)
			}
			assert.Len(t, faults, max(len(c.want), 1), text)
		})
	}
}

func TestDeepestConfigurationIsPossible(t *testing.T) {
	t.Parallel()
	// The last of the levels refers to itself and to Secrets, which are a level, too.
	compile(t, levels(referent.MaxDepth-1, false)...)
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	global := referent.Definition{ID: "g", GVR: gvr("gs"), ClusterScoped: true}
	compiled := compile(t, append(kafka(), global)...)
	got, err := compiled.ParseKey("n", "proxies.example.io/p")
	require.NoError(t, err)
	assert.Equal(t, key("proxies/p"), got)
	assert.Equal(t, "proxies.example.io/p", got.String())
	got, err = compiled.ParseKey("n", "gs.example.io/p")
	require.NoError(t, err)
	assert.Empty(t, got.Namespace)
	for text, want := range map[string]string{
		"proxies.example.io":   "is not of the form resource.group/name",
		"proxies/p":            `has no resource "proxies": known are services.example.io, filters.example.io, clusters.example.io, proxies.example.io, gs.example.io`,
		"secrets/p":            `has no resource "secrets"`,
		"proxies.example.io/P": "only a-z",
		"proxies.example.io/":  "the name is empty",
	} {
		_, err := compiled.ParseKey("n", text)
		require.ErrorContains(t, err, want, text)
	}
	_, err = compile(t).ParseKey("n", "a.b/c")
	require.ErrorContains(t, err, "known are none")
}

func TestIgnoredKindsAreNotReferredTo(t *testing.T) {
	t.Parallel()
	definitions := append(kafka(), referent.Definition{ID: "secretstores", GVR: gvr("secretstores"), Refs: []referent.EdgeDefinition{
		{Resource: "services", Name: "spec.service"}, {Resource: "secrets", Name: "spec.secret"}, {Resource: "configmaps", Name: "spec.config"},
	}})
	compiled := compile(t, definitions...)
	assert.Empty(t, compiled.Ignore(), "no kind")
	assert.Equal(t, []string{"referents[0].refs[0] (to: secrets)", "referents[4].refs[1] (to: secrets)"}, compiled.Ignore(reference.Secret))
	assert.Empty(t, compiled.Ignore(reference.Secret), "they are left out already")
	w := newWorldOf(t, compiled)
	w.set("secretstores/o", map[string]any{"service": "s", "secret": "missing", "config": "c"})
	w.set("services/s", map[string]any{"tls": map[string]any{"certificateRef": named("missing")}})
	w.config("configmap/c", "1")
	w.Evaluate()
	assert.Nil(t, w.Hold(key("secretstores/o")), "nothing of a Secret is needed")
	w.absent("configmap/c")
	w.Evaluate()
	assert.NotNil(t, w.Hold(key("secretstores/o")), "ConfigMaps are")
}
