package annotation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	configMapsKey = annotation.DefaultPrefix + "configmaps"
	secretsKey    = annotation.DefaultPrefix + "secrets"
)

func TestSAP(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason     string
		workload   map[string]string
		template   map[string]string
		labels     map[string]string
		tracked    []reference.Ref
		configMaps []string
		secrets    []string
		problems   []annotation.Problem
	}{
		"nothing":           {reason: "A workload that does not ask is left alone."},
		"other annotations": {reason: "What others write is not ours.", workload: map[string]string{"example.org/configmaps": "a", "configmaps": "b"}},
		"both lists": {
			reason:     "The plain case.",
			workload:   map[string]string{configMapsKey: "my-configmap", secretsKey: "my-secret,my-other-secret"},
			tracked:    []reference.Ref{configMap("my-configmap"), secret("my-other-secret"), secret("my-secret")},
			configMaps: []string{"my-configmap"}, secrets: []string{"my-secret", "my-other-secret"},
		},
		"white space": {
			reason:   "A list is often written with spaces, or folded by YAML; SAP's own reader watches ' b' then.",
			workload: map[string]string{configMapsKey: " a, b\t,\n  c\r\n"},
			tracked:  []reference.Ref{configMap("a"), configMap("b"), configMap("c")}, configMaps: []string{"a", "b", "c"},
		},
		"unicode white space": {
			reason:   "A no-break space comes out of documents.",
			workload: map[string]string{secretsKey: "\u00a0a\u00a0,\u2003b"},
			tracked:  []reference.Ref{secret("a"), secret("b")}, secrets: []string{"a", "b"},
		},
		"empty items": {
			reason:   "Templates leave commas behind.",
			workload: map[string]string{configMapsKey: ",a,, ,b,"},
			tracked:  []reference.Ref{configMap("a"), configMap("b")}, configMaps: []string{"a", "b"},
		},
		"empty list":  {reason: "It asks for nothing, and nothing is wrong with it.", workload: map[string]string{configMapsKey: ""}},
		"only commas": {reason: "It asks for nothing, and nothing is wrong with it.", workload: map[string]string{configMapsKey: " , ,,", secretsKey: "\n"}},
		"duplicates": {
			reason:   "They are tracked once; SAP's digest is over the list as written.",
			workload: map[string]string{configMapsKey: "b,a,b"},
			tracked:  []reference.Ref{configMap("a"), configMap("b")}, configMaps: []string{"b", "a", "b"},
		},
		"impossible names": {
			reason:   "The valid names still work, and the problem is reported.",
			workload: map[string]string{configMapsKey: "My_Config, app ,configmap/..", secretsKey: "db"},
			tracked:  []reference.Ref{configMap("app"), secret("db")}, configMaps: []string{"My_Config", "app", "configmap/.."}, secrets: []string{"db"},
			problems: []annotation.Problem{
				{Message: `annotation "pod-reloader.cs.sap.com/configmaps": item 1 is not tracked: the name "My_Config" has 'M' at position 1: only a-z, 0-9, '-' and '.' are allowed: correct the name or remove it`},
				{Message: `annotation "pod-reloader.cs.sap.com/configmaps": item 3 is not tracked: the name "configmap/.." has '/' at position 10: only a-z, 0-9, '-' and '.' are allowed: correct the name or remove it`},
			},
		},
		"only impossible names": {
			reason:   "It was asked for, though nothing of it is possible.",
			workload: map[string]string{secretsKey: "a b"},
			secrets:  []string{"a b"},
			problems: []annotation.Problem{{
				Message: `annotation "pod-reloader.cs.sap.com/secrets": item 1 is not tracked: the name "a b" has ' ' at position 2: only a-z, 0-9, '-' and '.' are allowed: correct the name or remove it`,
			}},
		},
		"an impossible name twice": {
			reason:   "It is reported once.",
			workload: map[string]string{secretsKey: "A,A"},
			secrets:  []string{"A", "A"},
			problems: []annotation.Problem{{
				Message: `annotation "pod-reloader.cs.sap.com/secrets": item 1 is not tracked: the name "A" has 'A' at position 1: only a-z, 0-9, '-' and '.' are allowed: correct the name or remove it`,
			}},
		},
		"many impossible names": {
			reason:   "The first are reported one by one, the others are counted.",
			workload: map[string]string{secretsKey: "A,B,C,D,E,F,G,good"},
			tracked:  []reference.Ref{secret("good")}, secrets: []string{"A", "B", "C", "D", "E", "F", "G", "good"},
			problems: append(invalid("A", "B", "C", "D", "E"), annotation.Problem{
				Message: `annotation "pod-reloader.cs.sap.com/secrets": 2 more items are wrong: correct or remove them`,
			}),
		},
		"one more": {
			reason:   "It is counted in the singular.",
			workload: map[string]string{secretsKey: "A,B,C,D,E,F"},
			secrets:  []string{"A", "B", "C", "D", "E", "F"},
			problems: append(invalid("A", "B", "C", "D", "E"), annotation.Problem{
				Message: `annotation "pod-reloader.cs.sap.com/secrets": 1 more item is wrong: correct or remove it`,
			}),
		},
		"semicolons": {
			reason:   "The wrong separator makes one impossible name.",
			workload: map[string]string{secretsKey: "a;b"},
			secrets:  []string{"a;b"},
			problems: []annotation.Problem{{
				Message: `annotation "pod-reloader.cs.sap.com/secrets": item 1 is not tracked: the name "a;b" has ';' at position 2: only a-z, 0-9, '-' and '.' are allowed: correct the name or remove it`,
			}},
		},
		"on the template": {
			reason:   "The list is read from the workload only; its author learns that it has no effect.",
			template: map[string]string{configMapsKey: "a"},
			problems: []annotation.Problem{{
				Message: `annotation "pod-reloader.cs.sap.com/configmaps" on the pod template has no effect: put it into metadata.annotations of the workload`,
			}},
		},
		"on both": {
			reason:   "A copy on the template does no harm.",
			workload: map[string]string{configMapsKey: "a"}, template: map[string]string{configMapsKey: "b"},
			tracked: []reference.Ref{configMap("a")}, configMaps: []string{"a"},
		},
		"misspelled": {
			reason: "Each likely slip is a Problem, not silence.",
			workload: map[string]string{
				annotation.DefaultPrefix + "config-maps": "a", annotation.DefaultPrefix + "configMaps": "a", annotation.DefaultPrefix + "secret": "b",
				annotation.DefaultPrefix + "cofnigmaps": "a", "example.org/secret": "c", annotation.DefaultPrefix + "config-hash": "x", annotation.DefaultPrefix + "config-map-names": "x",
			},
			problems: []annotation.Problem{
				{Message: `annotation "pod-reloader.cs.sap.com/cofnigmaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/config-maps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/configMaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/secret" has no effect: use "pod-reloader.cs.sap.com/secrets"`},
			},
		},
		"misspelled in many ways": {
			reason: "A workload may have thousands of keys.",
			workload: map[string]string{
				annotation.DefaultPrefix + "Configmaps": "a", annotation.DefaultPrefix + "cOnfigmaps": "a", annotation.DefaultPrefix + "coNfigmaps": "a",
				annotation.DefaultPrefix + "conFigmaps": "a", annotation.DefaultPrefix + "confIgmaps": "a", annotation.DefaultPrefix + "confiGmaps": "a",
			},
			problems: []annotation.Problem{
				{Message: `annotation "pod-reloader.cs.sap.com/Configmaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/cOnfigmaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/coNfigmaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/conFigmaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/confIgmaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
			},
		},
		"misspelled beside the right one": {
			reason: "What the second list names is not tracked, and its author must know.",
			workload: map[string]string{
				configMapsKey: "a", annotation.DefaultPrefix + "configMaps": "b", annotation.DefaultPrefix + "referent": "certificates.cert-manager.io/c",
			},
			tracked: []reference.Ref{configMap("a")}, configMaps: []string{"a"},
			problems: []annotation.Problem{
				{Message: `annotation "pod-reloader.cs.sap.com/configMaps" has no effect: use "pod-reloader.cs.sap.com/configmaps"`},
				{Message: `annotation "pod-reloader.cs.sap.com/referent" has no effect: use "pod-reloader.cs.sap.com/referents"`},
			},
		},
		"exclusion by other values": {
			reason:   "Only \"true\" excludes; a workload that was meant to be left alone is not reloaded silently.",
			workload: map[string]string{configMapsKey: "a"},
			labels:   map[string]string{annotation.DefaultPrefix + "ignored": "True", annotation.DefaultPrefix + "disabled": ""},
			tracked:  []reference.Ref{configMap("a")}, configMaps: []string{"a"},
			problems: []annotation.Problem{
				{Message: `label "pod-reloader.cs.sap.com/ignored" has the value "True", which does not exclude the workload: use "true" or "false"`},
				{Message: `label "pod-reloader.cs.sap.com/disabled" has the value "", which does not exclude the workload: use "true" or "false"`},
			},
		},
		"exclusion by an annotation": {
			reason:   "The labels are no annotations.",
			workload: map[string]string{configMapsKey: "a", annotation.DefaultPrefix + "ignored": "true"},
			tracked:  []reference.Ref{configMap("a")}, configMaps: []string{"a"},
			problems: []annotation.Problem{{Message: `annotation "pod-reloader.cs.sap.com/ignored" has no effect: it is a label`}},
		},
		"no exclusion": {
			reason:   "Both values have a meaning.",
			workload: map[string]string{configMapsKey: "a"},
			labels:   map[string]string{annotation.DefaultPrefix + "ignored": "false", annotation.DefaultPrefix + "disabled": "true"},
			tracked:  []reference.Ref{configMap("a")}, configMaps: []string{"a"},
		},
		"singular": {
			reason:   "The likely slip is reported, the other list works.",
			workload: map[string]string{annotation.DefaultPrefix + "configmap": "a", secretsKey: "b"},
			tracked:  []reference.Ref{secret("b")}, secrets: []string{"b"},
			problems: []annotation.Problem{{
				Message: `annotation "pod-reloader.cs.sap.com/configmap" has no effect: use "pod-reloader.cs.sap.com/configmaps"`,
			}},
		},
	}
	dialect := annotation.SAP{Keys: annotation.DefaultKeys()}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, problems := dialect.Parse(annotation.Source{Workload: tc.workload, Template: tc.template, Labels: tc.labels})
			assert.Equal(t, tc.tracked, intent.Refs(), tc.reason)
			assert.Equal(t, tc.configMaps, intent.ConfigMaps, tc.reason)
			assert.Equal(t, tc.secrets, intent.Secrets, tc.reason)
			assert.Equal(t, len(tc.configMaps)+len(tc.secrets) > 0, intent.Asked, tc.reason)
			assert.ElementsMatch(t, tc.problems, problems, tc.reason)
			for ref, trigger := range intent.Tracked {
				assert.Equal(t, annotation.Trigger{OnCreate: true, OnDelete: true}, trigger, "%s: in this dialect, every Change triggers", ref)
			}
		})
	}
}

// invalid returns the Problems of one-letter names in capitals in the list of Secrets.
func invalid(names ...string) []annotation.Problem {
	var problems []annotation.Problem
	for i, name := range names {
		problems = append(problems, annotation.Problem{Message: fmt.Sprintf(
			`annotation "pod-reloader.cs.sap.com/secrets": item %d is not tracked: the name %q has '%s' at position 1: `+
				`only a-z, 0-9, '-' and '.' are allowed: correct the name or remove it`, i+1, name, name)})
	}
	return problems
}

func TestNearlyTheKeyOfAListIsReported(t *testing.T) {
	t.Parallel()
	for key, reported := range map[string]bool{
		"con-fig-ma-ps": true, "con_fig_ma_ps": true, "con.fig.ma.ps": true, "CONFIGMAP": true,
		"configmapxy": true, "figmaps": false, "cnfgmaps": true, "configmapxyz": false, "nfigmap": true, "con1fig1ma1ps": false,
	} {
		_, problems := annotation.Parse(annotation.Source{Workload: map[string]string{configMapsKey: "a", annotation.DefaultPrefix + key: "b"}},
			annotation.SAP{Keys: annotation.DefaultKeys()})
		assert.Equal(t, reported, len(problems) == 1, "%s: two letters may be wrong, in whatever case and with whatever between words", key)
	}
}

func TestSAPUnderAnotherPrefix(t *testing.T) {
	t.Parallel()
	intent, problems := annotation.SAP{Keys: keysOf(t, "example.org")}.Parse(annotation.Source{
		Workload: map[string]string{"example.org/secrets": "a", secretsKey: "b"},
	})
	assert.Equal(t, []reference.Ref{secret("a")}, intent.Refs(), "two installations with different prefixes do not disturb each other")
	assert.Empty(t, problems)
}

func TestSAPWithoutSecrets(t *testing.T) {
	t.Parallel()
	dialect := annotation.SAP{Keys: annotation.DefaultKeys(), WithoutSecrets: true}
	intent, problems := dialect.Parse(annotation.Source{Workload: map[string]string{configMapsKey: "a", secretsKey: "b"}})
	assert.Equal(t, []reference.Ref{{Kind: reference.ConfigMap, Name: "a"}}, intent.Refs())
	assert.Equal(t, []annotation.Problem{{Message: fmt.Sprintf(
		"annotation %q has no effect: this installation does not handle secrets (--secrets=false)", secretsKey)}}, problems)

	_, problems = dialect.Parse(annotation.Source{Workload: map[string]string{configMapsKey: "a", secretsKey: ""}})
	assert.Empty(t, problems, "an empty list asks for nothing")
}

// The Problems of the largest lists are bounded.
func TestSAPHugeLists(t *testing.T) {
	t.Parallel()
	dialect := annotation.SAP{Keys: annotation.DefaultKeys()}
	for name, list := range hugeLists() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := dialect.Parse(annotation.Source{Workload: map[string]string{configMapsKey: list, secretsKey: list}})
			assertBounded(t, problems)
		})
	}
}

// many makes a list of different impossible names.
func many(size int) string {
	var list strings.Builder
	for i := 0; list.Len() < size; i++ {
		fmt.Fprintf(&list, "N%d,", i)
	}
	return list.String()
}

func assertBounded(t *testing.T, problems []annotation.Problem) {
	t.Helper()
	assert.LessOrEqual(t, len(problems), 16, "a longer report is not readable")
	for _, problem := range problems {
		assert.Less(t, len(problem.Message), 1024, "an Event's message is bounded")
		assert.True(t, utf8.ValidString(problem.Message), "the API server refuses anything else")
	}
}

// FuzzSAP: the lists come from every user who may write a workload.
func FuzzSAP(f *testing.F) {
	f.Add("my-configmap", "my-secret,my-other-secret")
	f.Add(" a, b\t,\n c ", ",,a,,")
	f.Add("My_Config,configmap/..,\x00,\xff", "a;b")
	f.Add("\u00a0a\u00a0", "b,b,b")
	dialect := annotation.SAP{Keys: annotation.DefaultKeys()}
	parse := func(configMaps, secrets string) (annotation.Intent, []annotation.Problem) {
		return dialect.Parse(annotation.Source{Workload: map[string]string{configMapsKey: configMaps, secretsKey: secrets}})
	}
	f.Fuzz(func(t *testing.T, configMaps, secrets string) {
		intent, problems := parse(configMaps, secrets)
		assertBounded(t, problems)
		for ref := range intent.Tracked {
			require.NoError(t, reference.ValidName(ref.Name), "only names that can exist are tracked")
		}
		for _, name := range slices.Concat(intent.ConfigMaps, intent.Secrets) {
			require.True(t, name != "" && name == strings.TrimSpace(name) && !strings.Contains(name, ","), "%q", name)
		}
		require.Equal(t, intent.Asked, strings.Trim(strings.Join(strings.Fields(configMaps+secrets), ""), ",") != "")
		require.True(t, len(problems) > 0 || len(intent.Tracked) > 0 || !intent.Asked, "never silently nothing")

		items := strings.Split(configMaps, ",")
		slices.Reverse(items)
		rewritten, _ := parse(" ,"+strings.Join(items, " ,\t")+","+configMaps, secrets)
		require.Equal(t, intent.Tracked, rewritten.Tracked, "white space, order and repetition do not matter")
		require.True(t, intent.SameLists(rewritten), "nor are they an edit of the list")
	})
}

func BenchmarkSAP(b *testing.B) {
	dialect := annotation.SAP{Keys: annotation.DefaultKeys()}
	source := annotation.Source{Workload: map[string]string{configMapsKey: "my-configmap", secretsKey: "my-secret, my-other-secret"}}
	b.ReportAllocs()
	for b.Loop() {
		dialect.Parse(source)
	}
}
