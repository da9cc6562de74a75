package configuration_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const header = "apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\n"

func TestParse(t *testing.T) {
	t.Parallel()
	rollout := "argoproj.io/v1alpha1/Rollout=spec.template"
	for name, c := range map[string]struct {
		text string
		want []string
		why  string
	}{
		"NoKind":     {header, nil, "every section may be missing"},
		"NullKinds":  {header + "workloadKinds:", nil, "what is written is nothing yet"},
		"EmptyKinds": {header + "workloadKinds: []", nil, "as it is after the last one was taken out"},
		"AKind": {
			header + "workloadKinds:\n- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, template: spec.template}",
			[]string{rollout},
			"the example of the documentation",
		},
		"InTheirOrder": {
			header + "workloadKinds:\n- {apiVersion: b.io/v1, kind: B, template: .spec.pod}\n- {apiVersion: a.io/v1, kind: A, template: spec.a.b}",
			[]string{"b.io/v1/B=spec.pod", "a.io/v1/A=spec.a.b"},
			"and with a path as kubectl has it",
		},
		"SameNameInTwoGroups": {
			header + "workloadKinds:\n- {apiVersion: b.io/v1, kind: Deployment, template: spec.t}\n- {apiVersion: a.io/v1, kind: Deployment, template: spec.t}",
			[]string{"b.io/v1/Deployment=spec.t", "a.io/v1/Deployment=spec.t"},
			"these are two kinds, and neither is the built-in one",
		},
		"JSON": {
			`{"apiVersion":"pod-reloader.io/v1alpha1","kind":"Configuration","workloadKinds":[{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","template":"spec.template"}]}`,
			[]string{rollout},
			"JSON is YAML",
		},
		"AsLongAsCanBe":   {header + strings.Repeat("#", configuration.MaxSize-len(header)), nil, "a ConfigMap can hold it"},
		"AroundADocument": {"# ours\n---\n" + header + "---\n# nothing\n", nil, "comments make no document"},
		"CarriageReturns": {strings.ReplaceAll("---\n"+header+"...\n", "\n", "\r\n"), nil, "as an editor of another system leaves them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := configuration.Parse([]byte(c.text))
			require.NoError(t, err, c.why)
			var kinds []string
			for _, kind := range got.WorkloadKinds {
				kinds = append(kinds, kind.String())
			}
			assert.Equal(t, c.want, kinds, c.why)
		})
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	kinds := func(items ...string) string { return header + "workloadKinds:\n- " + strings.Join(items, "\n- ") }
	const good = "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, template: spec.template}"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"Nothing":       {"", []string{"it is empty: want one YAML mapping that begins with apiVersion: pod-reloader.io/v1alpha1"}},
		"CommentsOnly":  {"# later\n---\n", []string{"it is empty"}},
		"NoYAML":        {header + "workloadKinds: [", []string{"it is not valid YAML", "line 3"}},
		"LaterDocument": {"---\n" + header + "---\n\na: [", []string{"it is not valid YAML", "line 6"}},
		"AList":         {"- a", []string{"want one YAML mapping"}},
		"AText":         {"configuration", []string{"want one YAML mapping"}},
		"TwoDocuments":  {header + "---\n" + header, []string{"it has 2 YAML documents: want one"}},
		"AfterTheEnd":   {header + "...\n" + header, []string{"it has 2 YAML documents"}},
		"OnTheMarker":   {header + "--- {a: b}\n", []string{"it has 2 YAML documents"}},
		"KeyTwice":      {header + "kind: Configuration\n", []string{`key "kind" already set`, "line 3"}},
		"KeyTwiceDeep":  {kinds("{apiVersion: a.io/v1, kind: A, kind: B, template: spec}"), []string{`key "kind" already set`}},
		"TooLong":       {header + strings.Repeat("#", configuration.MaxSize+1-len(header)), []string{"1048577 bytes are too many: at most 1048576"}},
		"NoHeader":      {"workloadKinds: []", []string{"apiVersion: Required value: write pod-reloader.io/v1alpha1", "kind: Required value: write Configuration"}},
		"OtherVersion":  {"apiVersion: pod-reloader.io/v2\nkind: Configuration", []string{`apiVersion: Unsupported value: "pod-reloader.io/v2": supported values: "pod-reloader.io/v1alpha1"`}},
		"OtherKind":     {"apiVersion: pod-reloader.io/v1alpha1\nkind: ConfigMap\ndata: {}", []string{`kind: Unsupported value: "ConfigMap"`, "data: Forbidden: this field is unknown; known are apiVersion, kind, workloadKinds, referents"}},
		"HeaderNoText":  {"apiVersion: 1\nkind: {}", []string{`apiVersion: Invalid value: "1": want a string`, `kind: Invalid value: "a mapping": want a string`}},
		"UnknownFields": {header + "workloadKind: []\n\"a\\nb\": 1", []string{"workloadKind: Forbidden: this field is unknown", `"a\nb": Forbidden`}},
		"OtherCase":     {header + "WorkloadKinds: []", []string{"WorkloadKinds: Forbidden: this field is unknown"}},
		"KindsNoList":   {header + "workloadKinds: {}", []string{`workloadKinds: Invalid value: "a mapping": want a list`}},
		"KindNoMapping": {kinds("argoproj.io/v1alpha1/Rollout=spec.template", good), []string{`workloadKinds[0]: Invalid value: "argoproj.io/v1alpha1/Rollout=spec.template": want a mapping`}},
		"KindNothing":   {kinds("null"), []string{`workloadKinds[0]: Invalid value: "nothing": want a mapping`}},
		"KindEmpty": {kinds("{}"), []string{
			"workloadKinds[0].apiVersion: Required value: the group and version of the kind, e.g. argoproj.io/v1alpha1",
			"workloadKinds[0].kind: Required value: the kind, e.g. Rollout",
			"workloadKinds[0].template: Required value: the path to the pod template, e.g. spec.template",
		}},
		"AllOfIt": {kinds(good, "{apiVersion: v1, kind: pods, template: status, path: spec}", "{apiVersion: A/1, kind: B, template: spec..x}"), []string{
			"workloadKinds[1].path: Forbidden: this field is unknown; known are apiVersion, kind, template",
			`workloadKinds[1].apiVersion: Invalid value: "v1": "" is not an API group; write group/version, e.g. argoproj.io/v1alpha1`,
			`workloadKinds[1].kind: Invalid value: "pods": "pods" is not a kind`,
			`workloadKinds[1].template: Invalid value: "status": the path must begin with spec`,
			`workloadKinds[2].apiVersion: Invalid value: "A/1": "A" is not an API group`,
			`workloadKinds[2].apiVersion: Invalid value: "A/1": "1" is not an API version`,
			`workloadKinds[2].template: Invalid value: "spec..x": "" is not a field name`,
		}},
		"TooManySlashes": {kinds("{apiVersion: a.io/v1/x, kind: B, template: spec}"), []string{`workloadKinds[0].apiVersion: Invalid value: "a.io/v1/x": "v1/x" is not an API version`}},
		"AnIndex":        {kinds("{apiVersion: a.io/v1, kind: B, template: 'spec.pods[0]'}"), []string{`workloadKinds[0].template: Invalid value: "spec.pods[0]"`}},
		"ReplicaSet":     {kinds("{apiVersion: apps/v1, kind: ReplicaSet, template: spec.template}"), []string{`workloadKinds[0].kind: Invalid value: "ReplicaSet": a ReplicaSet does not replace its pods`}},
		"BuiltIn":        {kinds("{apiVersion: apps/v1beta2, kind: Deployment, template: spec.template}"), []string{`workloadKinds[0].kind: Invalid value: "Deployment": this kind is built in; leave it out`}},
		"Twice": {kinds(good, "{apiVersion: argoproj.io/v1, kind: Rollout, template: spec.template}"), []string{
			`workloadKinds[1].kind: Invalid value: "argoproj.io/v1/Rollout": workloadKinds[0] has this kind already, perhaps in another version; leave one out`,
		}},
		"TwiceAndMore": {kinds(good, good, "{apiVersion: a.io/v1, kind: B, template: status}"), []string{
			"workloadKinds[0] has this kind already, perhaps in another version; leave one out; workloadKinds[2].template: Invalid value",
		}},
		"VeryLong": {kinds("{apiVersion: a.io/v1, kind: B, template: " + strings.Repeat("ü", 4000) + "}"), []string{strings.Repeat("ü", 32) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := configuration.Parse([]byte(c.text))
			require.Error(t, err)
			assert.Zero(t, got)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "\n", "it is reported on one line")
			assert.Less(t, len(err.Error()), 2000, "what is wrong does not make the message long")
		})
	}
}

// A copy of each empty document with the lines before it would take half a gigabyte, and gigabytes for the longest text.
func TestManyEmptyDocumentsCostNothing(t *testing.T) { //nolint:paralleltest // it measures what it allocates
	text := strings.Repeat("---\n", 1<<14)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := configuration.Parse([]byte(text))
	require.ErrorContains(t, err, "it is empty")
	_, err = configuration.Parse([]byte(text + "a: [\n"))
	require.ErrorContains(t, err, "line 1638", "the line of the whole text")
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20), "bytes for two texts; the race detector takes half of it")
}

func TestParseLocation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]configuration.Location{
		"":                              {},
		"configmap:pod-reloader/config": {Namespace: "pod-reloader", Name: "config"},
		"configmap:a/b.c":               {Namespace: "a", Name: "b.c"},
		"/etc/pod-reloader/config.yaml": {Path: "/etc/pod-reloader/config.yaml"},
		"./configmap:a/b":               {Path: "./configmap:a/b"},
	} {
		got, err := configuration.ParseLocation(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, text, got.String())
		assert.Equal(t, text == "", got.IsZero())
	}
	for text, want := range map[string]string{
		"configmap:":        "want configmap:NAMESPACE/NAME",
		"configmap:name":    "want configmap:NAMESPACE/NAME",
		"configmap:/name":   "want configmap:NAMESPACE/NAME",
		"configmap:a/":      "want configmap:NAMESPACE/NAME",
		"configmap:a/b/c":   "want configmap:NAMESPACE/NAME",
		"configmap:A_b/ok":  `"A_b" is not a valid namespace name`,
		"configmap:a.b/C d": `"a.b" is not a valid namespace name`,
		"configmap:a/C d":   `the name "C d"`,
	} {
		got, err := configuration.ParseLocation(text)
		require.ErrorContains(t, err, want, text)
		assert.Zero(t, got)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func FuzzParse(f *testing.F) {
	examples, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(f, err)
	require.NotEmpty(f, examples)
	for _, example := range examples {
		text, err := os.ReadFile(example)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := configuration.Parse(text)
		if err != nil {
			assert.Zero(t, got)
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		again, err := configuration.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, got, again)
		seen := workload.NewKinds(workload.Builtin()...)
		for _, kind := range got.WorkloadKinds {
			parsed, err := workload.ParseKind(kind.String())
			require.NoError(t, err, "what the one form takes, the other does")
			assert.Equal(t, kind, parsed)
			before := len(seen.All())
			seen = seen.Override(kind)
			assert.Len(t, seen.All(), before+1, "no kind is there twice")
		}
	})
}

// FuzzParseLocation: what is taken is written the same, and names one thing; what is not is refused on one line, and only
// where it would be a ConfigMap.
func FuzzParseLocation(f *testing.F) {
	for _, seed := range []string{"", "configmap:a/b", "configmap:a/b/c", "configmap:A_b/C d", "./configmap:a/b", "/etc/config.yaml"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := configuration.ParseLocation(text)
		if err != nil {
			assert.Zero(t, got)
			assert.NotContains(t, err.Error(), "\n")
			assert.True(t, strings.HasPrefix(text, "configmap:"), "every path is taken")
			return
		}
		assert.Equal(t, text, got.String())
		assert.Equal(t, text == "", got.IsZero())
		if strings.HasPrefix(text, "configmap:") {
			assert.Empty(t, got.Path)
			assert.Empty(t, validation.IsDNS1123Label(got.Namespace))
			assert.Empty(t, validation.IsDNS1123Subdomain(got.Name))
			return
		}
		assert.Equal(t, configuration.Location{Path: text}, got)
	})
}
