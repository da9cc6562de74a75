package strategy_test

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

func cm(name string) reference.Ref     { return reference.Ref{Kind: reference.ConfigMap, Name: name} }
func secret(name string) reference.Ref { return reference.Ref{Kind: reference.Secret, Name: name} }

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &raw))
	return raw
}

func TestVariableName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref  reference.Ref
		want string
	}{
		"a name":                                {cm("foo"), "STAKATER_FOO_CONFIGMAP"},
		"a Secret":                              {secret("foo"), "STAKATER_FOO_SECRET"},
		"a SecretProviderClass":                 {reference.Ref{Kind: reference.SecretProviderClass, Name: "foo.x"}, "STAKATER_FOO_X_SECRETPROVIDERCLASS"},
		"a run is one underscore":               {cm("foo-.bar--1"), "STAKATER_FOO_BAR_1_CONFIGMAP"},
		"a run at the beginning is dropped":     {cm(".-foo"), "STAKATER_FOO_CONFIGMAP"},
		"a run at the end stays":                {cm("foo-"), "STAKATER_FOO__CONFIGMAP"},
		"the first and the last characters":     {cm("az09"), "STAKATER_AZ09_CONFIGMAP"},
		"two objects can have the same name, 1": {cm("foo.bar"), "STAKATER_FOO_BAR_CONFIGMAP"},
		"two objects can have the same name, 2": {cm("foo-bar"), "STAKATER_FOO_BAR_CONFIGMAP"},
	} {
		assert.Equal(t, c.want, strategy.VariableName(c.ref), name)
	}
}

const users = `{"spec":{
	"volumes":[{"name":"v1","configMap":{"name":"mounted"}},{"name":"v2","projected":{"sources":[{"secret":{"name":"projected"}},{"configMap":{"name":"both"}}]}},
		{"name":"v3","secret":{"secretName":"initial"}},{"name":"v4","configMap":{"name":"idle"}},{"name":"v5","csi":{"nodePublishSecretRef":{"name":"driver"}}}],
	"imagePullSecrets":[{"name":"pull"}],
	"initContainers":[{"name":"init","volumeMounts":[{"name":"v3"},{"name":"v1"}],"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"early","key":"k"}}}],
		"envFrom":[{"configMapRef":{"name":"late"}}]}],
	"containers":[{"name":"first","env":[{"name":"X","value":"x"}]},
		{"name":"second","volumeMounts":[{"name":"v1"},{"name":"v5"}],"envFrom":[{"configMapRef":{"name":"both"}},{"secretRef":{"name":"env"}},{"configMapRef":{"name":"late"}}]},
		{"name":"third","volumeMounts":[{"name":"v2"},{"name":"v1"}],"env":[{"name":"Y","valueFrom":{"configMapKeyRef":{"name":"key","key":"k"}}}]}]}}`

func TestUsersOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref  reference.Ref
		want string
	}{
		"the first container that mounts the volume": {cm("mounted"), "second"},
		"a projected volume":                         {secret("projected"), "third"},
		"a mount comes before an environment":        {cm("both"), "third"},
		"a mount of an init container: the first":    {secret("initial"), "first"},
		"a volume that is not mounted: the first":    {cm("idle"), "first"},
		"envFrom":   {secret("env"), "second"},
		"valueFrom": {cm("key"), "third"},
		"an environment of an init container: the first": {secret("early"), "first"},
		"a container comes before an init container":     {cm("late"), "second"},
		"the credentials of a volume's driver":           {secret("driver"), "second"},
		"an image pull secret: the first":                {secret("pull"), "first"},
		"not referenced: the first":                      {cm("named"), "first"},
		"another kind of the same name: the first":       {secret("mounted"), "first"},
	} {
		assert.Equal(t, c.want, strategy.UsersOf(decode(t, users)).Of(c.ref), name)
	}
	assert.Empty(t, strategy.UsersOf(map[string]any{}).Of(cm("a")), "there is no container")
	assert.Empty(t, strategy.UsersOf(decode(t, `{"spec":{"containers":"x","volumes":[1]}}`)).Of(cm("a")))
}

func TestValue(t *testing.T) {
	t.Parallel()
	key := digest.KeyID("00000000")
	entry := digest.Entry{0xab, 0xcd}
	for name, c := range map[string]struct {
		state digest.State
		want  string
	}{
		"SHA-1 where it was computed": {digest.State{SHA1: "da39a3", Entries: map[digest.KeyID]digest.Entry{key: entry}}, "da39a3"},
		"keyed otherwise":             {digest.State{Entries: map[digest.KeyID]digest.Entry{key: entry}}, "abcd" + strings.Repeat("0", 36)},
		"absent is the empty content": {digest.State{Absent: true}, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
	} {
		got, ok := strategy.Value(c.state, key)
		assert.True(t, ok, name)
		assert.Equal(t, c.want, got, name)
	}
	_, ok := strategy.Value(digest.State{UID: "u"}, key)
	assert.False(t, ok, "the content was not read")
}

// patched applies the operations of Fields to a template.
func patched(t *testing.T, template string, want strategy.Fields) map[string]any {
	t.Helper()
	ops, err := json.Marshal(want.Operations(decode(t, template), ""))
	require.NoError(t, err)
	patch, err := jsonpatch.DecodePatch(ops)
	require.NoError(t, err)
	after, err := patch.Apply([]byte(template))
	require.NoError(t, err)
	return decode(t, string(after))
}

func variable(container string, index int, name, value string) strategy.Variable {
	return strategy.Variable{Container: container, Index: index, Name: "STAKATER_" + name + "_CONFIGMAP", Value: value}
}

func TestFieldsGoToTheirPositions(t *testing.T) {
	t.Parallel()
	const a0, a1 = `{"name":"STAKATER_A_CONFIGMAP","value":"0"}`, `{"name":"STAKATER_A_CONFIGMAP","value":"1"}`
	template := func(c, d string) string {
		return `{"spec":{"containers":[{"name":"c"` + c + `},{"name":"d"` + d + `,"unknown":{"x":1}}]}}`
	}
	for name, c := range map[string]struct {
		template string
		want     []strategy.Variable
		after    string
		ops      int
	}{
		"no environment": {template("", ""), []strategy.Variable{variable("d", 0, "A", "1")}, template("", `,"env":[`+a1+`]`), 2},
		"null":           {template(`,"env":null`, ""), []strategy.Variable{variable("c", 0, "A", "1")}, template(`,"env":[`+a1+`]`, ""), 2},
		"empty":          {template(`,"env":[]`, ""), []strategy.Variable{variable("c", 0, "A", "1")}, template(`,"env":[`+a1+`]`, ""), 1},
		"its old position": {
			template(`,"env":[{"name":"X"},{"name":"Y"}]`, ""),
			[]strategy.Variable{variable("c", 1, "A", "1")},
			template(`,"env":[{"name":"X"},`+a1+`,{"name":"Y"}]`, ""), 1,
		},
		"a position beyond the end": {
			template(`,"env":[{"name":"X"}]`, ""), []strategy.Variable{variable("c", 7, "A", "1")}, template(`,"env":[{"name":"X"},`+a1+`]`, ""), 1,
		},
		"another value": {
			template(`,"env":[{"name":"X"},`+a0+`]`, ""),
			[]strategy.Variable{variable("c", 1, "A", "1")},
			template(`,"env":[{"name":"X"},`+a1+`]`, ""), 1,
		},
		"behind the end, with one of its own there already": {
			template(`,"env":[{"name":"X"},`+a0+`]`, ""),
			[]strategy.Variable{variable("c", 7, "A", "1")},
			template(`,"env":[{"name":"X"},`+a1+`]`, ""), 1,
		},
		"moved": {
			template(`,"env":[{"name":"X"},`+a0+`]`, ""),
			[]strategy.Variable{variable("c", 0, "A", "0")},
			template(`,"env":[`+a0+`,{"name":"X"}]`, ""), 2,
		},
		"removed":                        {template(`,"env":[{"name":"X"},`+a0+`]`, ""), nil, template(`,"env":[{"name":"X"}]`, ""), 1},
		"the last one of all":            {template(`,"env":[`+a0+`]`, ""), nil, template("", ""), 1},
		"a container that is gone":       {template("", ""), []strategy.Variable{variable("e", 0, "A", "1")}, template("", ""), 0},
		"an environment that is no list": {template(`,"env":{}`, ""), []strategy.Variable{variable("c", 0, "A", "1")}, template(`,"env":{}`, ""), 0},
		"nothing to do":                  {template(`,"env":[`+a0+`]`, ""), []strategy.Variable{variable("c", 0, "A", "0")}, template(`,"env":[`+a0+`]`, ""), 0},
		"two at one position": {
			template(`,"env":[{"name":"X"}]`, ""),
			[]strategy.Variable{variable("c", 0, "A", "1"), variable("c", 0, "B", "2")},
			template(`,"env":[`+a1+`,{"name":"STAKATER_B_CONFIGMAP","value":"2"},{"name":"X"}]`, ""), 2,
		},
		"two in one environment": {
			template(`,"env":[{"name":"X"}]`, ""),
			[]strategy.Variable{variable("c", 0, "A", "1"), variable("c", 2, "B", "2")},
			template(`,"env":[`+a1+`,{"name":"X"},{"name":"STAKATER_B_CONFIGMAP","value":"2"}]`, ""), 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := decode(t, c.template)
			want := strategy.Fields{Variables: c.want}.On(raw)
			after := patched(t, c.template, want)
			assert.Equal(t, decode(t, c.after), after)
			assert.Len(t, want.Operations(raw, ""), c.ops)
			assert.Equal(t, decode(t, c.template), raw, "the template is not changed")
			assert.Equal(t, want.Text(), strategy.Read(after).Text(), "what was put is read again")
			assert.Equal(t, want, strategy.Parse(want.Text()))
		})
	}
}

func TestOnlyReloadersVariablesAreRead(t *testing.T) {
	t.Parallel()
	template := decode(t, `{"metadata":{"annotations":{"reloader.stakater.com/last-reloaded-from":"f"}},"spec":{
		"initContainers":[{"name":"i","env":[{"name":"STAKATER_A_CONFIGMAP","value":"0"}]}],
		"containers":[{"name":"c","env":[{"name":"STAKATER_A_CONFIGMAP","value":"0"},{"name":"STAKATER_B_SECRET","value":"1"},
		{"name":"STAKATER_A_CONFIGMAP","valueFrom":{}},{"name":"STAKATER_A_OTHER","value":"0"},{"name":"A_CONFIGMAP","value":"0"},{"name":"STAKATER_É_CONFIGMAP","value":"0"},
		{"name":"STAKATER_C_SECRET"},3]}]}}`)
	read := strategy.Read(template)
	assert.Equal(t, strategy.Fields{From: "f", Variables: []strategy.Variable{
		variable("c", 0, "A", "0"), {Container: "c", Index: 1, Name: "STAKATER_B_SECRET", Value: "1"},
	}}, read)
	value, ok := read.Value("STAKATER_B_SECRET")
	assert.True(t, ok, "the variable has a value")
	assert.Equal(t, "1", value)
	value, ok = read.Value("STAKATER_A_CONFIGMAP")
	assert.True(t, ok, "the first")
	assert.Equal(t, "0", value)
	_, ok = read.Value("STAKATER_C_SECRET")
	assert.False(t, ok, "the variable has no value")
	rest := strategy.Without(template)
	assert.Empty(t, strategy.Read(rest).Variables)
	assert.Len(t, rest["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["env"], 6) //nolint:forcetypeassert // it is there
	assert.Len(t, strategy.Read(template).Variables, 2, "the template itself is not changed")
}

func TestVariableIsRecognisedByItsName(t *testing.T) {
	t.Parallel()
	for name, ours := range map[string]bool{
		"STAKATER_AZ_09_CONFIGMAP":       true,
		"STAKATER_A_SECRET":              true,
		"STAKATER_A_SECRETPROVIDERCLASS": true,
		"STAKATER_A_POD":                 false,
		"RELOADER_A_SECRET":              false,
		"STAKATER_a_SECRET":              false,
		"STAKATER_A-B_SECRET":            false,
		"STAKATER_\u0141_SECRET":         false, // its last byte is that of A
	} {
		template := decode(t, `{"spec":{"containers":[{"name":"c","env":[{"name":"`+name+`","value":"1"}]}]}}`)
		assert.Equal(t, ours, len(strategy.Read(template).Variables) == 1, name)
	}
}

func TestWithVariable(t *testing.T) {
	t.Parallel()
	template := decode(t, `{"spec":{"containers":[{"name":"c","env":[{"name":"X"}]},{"name":"d"}]}}`)
	f := strategy.Fields{}.WithVariable(template, "d", cm("a"), "1").WithVariable(template, "c", cm("b"), "2").WithVariable(template, "c", cm("c.x"), "3")
	assert.Equal(t, []strategy.Variable{variable("c", 1, "B", "2"), variable("c", 2, "C_X", "3"), variable("d", 0, "A", "1")}, f.Variables)
	assert.Equal(t, variable("d", 0, "A", "4"), f.WithVariable(template, "c", cm("a"), "4").Variables[2], "it stays in the container that has it")
	assert.Equal(t, variable("c", 1, "B", "6"), f.WithVariable(template, "d", cm("b"), "6").Variables[0], "likewise where it is the first")
	assert.Equal(t, variable("c", 2, "C_X", "5"), f.WithVariable(template, "d", cm("c-x"), "5").Variables[1], "another object with the same name of a variable")
	assert.Equal(t, []strategy.Variable{variable("c", 1, "C_X", "3"), variable("d", 0, "A", "1")}, f.WithoutVariable(cm("b")).Variables)
	assert.Equal(t, f, f.WithoutVariable(cm("z")))
	assert.Equal(t, f, f.WithVariable(template, "e", cm("e"), "1"), "there is no such container")
	for n := range 200 {
		f = f.WithVariable(template, "c", cm("n"+strings.Repeat("n", n)), "1")
	}
	assert.Len(t, f.Variables, 100, "an environment is bounded")
}

func TestSource(t *testing.T) {
	t.Parallel()
	s := strategy.NewSource(secret("foo"), "ns", "abc", "c")
	s.ObservedAt = 17
	f := strategy.Fields{}.WithSource(s)
	assert.JSONEq(t, `{"type":"SECRET","name":"foo","namespace":"ns","hash":"abc","containerRefs":["c"],"observedAt":17}`, f.From)
	assert.True(t, strategy.ParseSource(f.From).Is(secret("foo")), "the source is this Secret")
	assert.False(t, strategy.ParseSource(f.From).Is(cm("foo")), "a ConfigMap of the same name is another object")
	s.ObservedAt = 18
	assert.Equal(t, int64(18), strategy.ParseSource(f.WithSource(s).From).ObservedAt, "a reload to the same hash")
	assert.Equal(t, strategy.Source{}, strategy.ParseSource("x"))
	for kind, want := range map[reference.Kind]string{
		reference.ConfigMap: "CONFIGMAP", reference.Secret: "SECRET", reference.SecretProviderClass: "SECRETPROVIDERCLASS",
	} {
		assert.Equal(t, want, strategy.NewSource(reference.Ref{Kind: kind, Name: "foo"}, "ns", "abc", "c").Type)
	}
}

func TestEdited(t *testing.T) {
	t.Parallel()
	old := strategy.Fields{From: "f", Variables: []strategy.Variable{variable("c", 0, "A", "1"), variable("c", 1, "B", "1")}}
	assert.Empty(t, strategy.Fields{}.Edited(old), "lost is not edited")
	assert.Empty(t, strategy.Fields{Variables: []strategy.Variable{variable("c", 0, "B", "1")}}.Edited(old), "another position")
	assert.Equal(t, []string{"STAKATER_C_CONFIGMAP"},
		strategy.Fields{Variables: []strategy.Variable{variable("c", 0, "C", "1")}}.Edited(old), "another variable with the same value")
	assert.Equal(t, []string{strategy.Annotation, "STAKATER_A_CONFIGMAP"},
		strategy.Fields{From: "g", Variables: []strategy.Variable{variable("c", 0, "A", "2")}}.Edited(old))
}

func TestCommonHasWhatBothHave(t *testing.T) {
	t.Parallel()
	a, b := variable("c", 0, "A", "1"), variable("c", 1, "B", "1")
	moved := variable("d", 7, "A", "1")
	for name, c := range map[string]struct{ own, other, want strategy.Fields }{
		"the same annotation":           {strategy.Fields{From: "f"}, strategy.Fields{From: "f"}, strategy.Fields{From: "f"}},
		"another annotation":            {strategy.Fields{From: "f"}, strategy.Fields{From: "g"}, strategy.Fields{}},
		"no annotation":                 {strategy.Fields{}, strategy.Fields{From: "g"}, strategy.Fields{}},
		"the position is the other's":   {strategy.Fields{Variables: []strategy.Variable{a}}, strategy.Fields{Variables: []strategy.Variable{moved}}, strategy.Fields{Variables: []strategy.Variable{moved}}},
		"another value":                 {strategy.Fields{Variables: []strategy.Variable{a}}, strategy.Fields{Variables: []strategy.Variable{variable("c", 0, "A", "2")}}, strategy.Fields{}},
		"another name, the same value":  {strategy.Fields{Variables: []strategy.Variable{a}}, strategy.Fields{Variables: []strategy.Variable{b}}, strategy.Fields{}},
		"one of two, in either of both": {strategy.Fields{Variables: []strategy.Variable{a, variable("c", 1, "C", "1")}}, strategy.Fields{Variables: []strategy.Variable{a, b}}, strategy.Fields{Variables: []strategy.Variable{a}}},
		"the gap is closed":             {strategy.Fields{Variables: []strategy.Variable{b}}, strategy.Fields{Variables: []strategy.Variable{a, b, variable("d", 1, "B", "1")}}, strategy.Fields{Variables: []strategy.Variable{variable("c", 0, "B", "1"), variable("d", 1, "B", "1")}}},
		"two gaps are closed":           {strategy.Fields{Variables: []strategy.Variable{variable("c", 2, "C", "1")}}, strategy.Fields{Variables: []strategy.Variable{b, a, variable("c", 2, "C", "1")}}, strategy.Fields{Variables: []strategy.Variable{variable("c", 0, "C", "1")}}},
	} {
		got := c.own.Common(c.other)
		assert.Equal(t, c.want.Text(), got.Text(), name)
	}
	other := []strategy.Variable{b, a}
	strategy.Fields{Variables: []strategy.Variable{a}}.Common(strategy.Fields{Variables: other})
	assert.Equal(t, []strategy.Variable{b, a}, other, "the other Fields are not changed")
}

// Another order in one environment is another template to a controller, so that what stays keeps its order.
func TestWithoutVariableClosesTheGapInItsContainerOnly(t *testing.T) {
	t.Parallel()
	f := strategy.Fields{Variables: []strategy.Variable{
		variable("c", 0, "A", "1"), variable("c", 1, "B", "1"), variable("c", 2, "C", "1"), variable("d", 2, "D", "1"),
	}}
	assert.Equal(t, []strategy.Variable{variable("c", 0, "A", "1"), variable("c", 1, "C", "1"), variable("d", 2, "D", "1")},
		f.WithoutVariable(cm("b")).Variables)
}

// An environment that its variables leave empty is none to the API, and so is one that a manifest has empty: the template is the one before
// the variables.
func TestWithoutLeavesNoEmptyEnvironment(t *testing.T) {
	t.Parallel()
	const ours, x = `{"name":"STAKATER_A_CONFIGMAP","value":"0"}`, `{"name":"X","value":"x"}`
	template := decode(t, `{"spec":{"containers":[{"name":"b","env":[`+x+`]},{"name":"c","env":[`+ours+`]},{"name":"d","env":[`+x+`,`+ours+`]},{"name":"e","env":[]},{"name":"f","env":null}]}}`)
	assert.Equal(t, decode(t, `{"spec":{"containers":[{"name":"b","env":[`+x+`]},{"name":"c"},{"name":"d","env":[`+x+`]},{"name":"e"},{"name":"f"}]}}`), strategy.Without(template))
}

func TestContainerThatCanHoldNoVariableHidesNoOther(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"without a name":           `{"image":"i"}`,
		"an environment of a map":  `{"name":"b","env":{}}`,
		"a number":                 `1`,
		"the name of one before":   `{"name":"a"},{"name":"a"}`,
		"an empty name, variables": `{"name":"","env":[{"name":"STAKATER_B_SECRET","value":"1"}]}`,
	} {
		template := decode(t, `{"spec":{"containers":[`+first+`,{"name":"c","env":[{"name":"STAKATER_A_CONFIGMAP","value":"0"}]}]}}`)
		assert.Equal(t, []strategy.Variable{variable("c", 0, "A", "0")}, strategy.Read(template).Variables, name)
	}
}

func TestStoredFieldsThatAreNoVariablesAreLeftOut(t *testing.T) {
	t.Parallel()
	template := decode(t, `{"spec":{"containers":[{"name":"c"}]}}`)
	for name, v := range map[string]strategy.Variable{
		"no value":          variable("c", 0, "A", ""),
		"a name of another": {Container: "c", Name: "PATH", Value: "/"},
		"neither":           {Container: "c", Name: "PATH"},
		"another container": variable("d", 0, "A", "1"),
	} {
		kept := variable("c", 0, "B", "1")
		assert.Equal(t, []strategy.Variable{kept}, strategy.Fields{Variables: []strategy.Variable{v, kept}}.On(template).Variables, name)
	}
}

func TestFieldsAreEmptyWithoutAnnotationAndVariables(t *testing.T) {
	t.Parallel()
	assert.True(t, strategy.Fields{}.Empty(), "there is neither an annotation nor a variable")
	assert.Empty(t, strategy.Fields{}.Text())
	for _, f := range []strategy.Fields{{From: "f"}, {Variables: []strategy.Variable{variable("c", 0, "A", "1")}}} {
		assert.False(t, f.Empty(), "%+v", f)
		assert.Equal(t, f, strategy.Parse(f.Text()))
	}
}

func TestFirstContainerThatMountsComesBeforeAnEnvironment(t *testing.T) {
	t.Parallel()
	template := decode(t, `{"spec":{"volumes":[{"name":"v","configMap":{"name":"a"}}],"containers":[
		{"name":"c","volumeMounts":[{"name":"v"}]},{"name":"d","envFrom":[{"configMapRef":{"name":"a"}}]}]}}`)
	assert.Equal(t, "c", strategy.UsersOf(template).Of(cm("a")))
}
