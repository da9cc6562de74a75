package annotation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	autoKey      = "reloader.stakater.com/auto"
	searchKey    = "reloader.stakater.com/search"
	cmReloadKey  = "configmap.reloader.stakater.com/reload"
	cmAutoKey    = "configmap.reloader.stakater.com/auto"
	cmExcludeKey = "configmaps.exclude.reloader.stakater.com/reload"
	sReloadKey   = "secret.reloader.stakater.com/reload"
	sAutoKey     = "secret.reloader.stakater.com/auto"
	sExcludeKey  = "secrets.exclude.reloader.stakater.com/reload"
)

// shop is a namespace with a few objects.
func shop() cluster {
	return cluster{
		configMap("app"): {}, configMap("app-1"): {}, configMap("app-2"): {Ignored: true}, configMap("marked"): {Marked: true},
		secret("app"): {}, secret("db"): {Marked: true, Ignored: true},
	}
}

// used are the references of the workload in the tables.
func used() []reference.Reference {
	return []reference.Reference{
		{Ref: configMap("absent"), Optional: true}, {Ref: configMap("app")}, {Ref: configMap("marked")}, {Ref: secret("app")}, {Ref: secret("db")},
	}
}

func TestStakater(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason             string
		workload, template map[string]string
		dialect            annotation.Stakater
		recorded           recorded
		silent             bool
		tracked            []reference.Ref
		problems           []string
	}{
		"nothing": {reason: "A workload that does not ask is left alone.", silent: true},
		"auto": {
			reason: "All that is referenced and not ignored, absent objects too.", workload: map[string]string{autoKey: "1"},
			tracked: []reference.Ref{configMap("absent"), configMap("app"), configMap("marked"), secret("app")},
		},
		"typed auto":   {reason: "What is referenced of that kind.", workload: map[string]string{sAutoKey: "true"}, tracked: []reference.Ref{secret("app")}},
		"explicit no":  {reason: "It opts out of everything.", workload: map[string]string{autoKey: "false", sAutoKey: "true", cmReloadKey: "app"}, silent: true},
		"search":       {reason: "Marked, referenced and not ignored.", workload: map[string]string{searchKey: "true"}, tracked: []reference.Ref{configMap("marked")}},
		"search, gone": {reason: "What was tracked before it was deleted stays tracked.", workload: map[string]string{searchKey: "true"}, recorded: recorded{refs: []reference.Ref{configMap("absent"), configMap("app"), secret("x")}, compact: true}, tracked: []reference.Ref{configMap("absent"), configMap("marked")}},
		"named":        {reason: "A name is tracked though there is no such object.", workload: map[string]string{cmReloadKey: " app ,nowhere,,app"}, tracked: []reference.Ref{configMap("app"), configMap("nowhere")}},
		"a name with a dot": {
			reason: "It is a name, and an expression that matches others.", workload: map[string]string{cmReloadKey: "app.1,app.conf,not.me", cmExcludeKey: "not.me"},
			tracked: []reference.Ref{configMap("app-1"), configMap("app.1"), configMap("app.conf")},
		},
		"expression": {reason: "It tracks what exists, and not what is ignored.", workload: map[string]string{cmReloadKey: "app-.*"}, tracked: []reference.Ref{configMap("app-1")}},
		"expression, a deleted object": {
			reason: "Recorded ones stay tracked while absent; others, ignored and excluded ones do not.", workload: map[string]string{cmReloadKey: "app-.*", cmExcludeKey: "app-5"},
			recorded: recorded{refs: []reference.Ref{configMap("app-2"), configMap("app-3"), configMap("app-5"), configMap("x"), secret("app-4")}},
			tracked:  []reference.Ref{configMap("app-1"), configMap("app-3")},
		},
		"exclude": {
			reason: "It goes before auto, lists and expressions.", workload: map[string]string{autoKey: "true", cmReloadKey: "other,app.*", cmExcludeKey: "other, app-1,app", sExcludeKey: "app"},
			tracked: []reference.Ref{configMap("absent"), configMap("marked")},
		},
		"exclude alone": {reason: "It asks for nothing.", workload: map[string]string{cmExcludeKey: "app"}, silent: true},
		"template": {
			reason: "Kind by kind: the workload speaks of ConfigMaps only.", workload: map[string]string{cmReloadKey: "app-1"}, template: map[string]string{sReloadKey: "x", autoKey: "true"},
			tracked: []reference.Ref{configMap("app-1"), secret("app"), secret("x")},
		},
		"template overridden": {
			reason: "The workload's own annotations count, the author learns it.", workload: map[string]string{searchKey: "false"},
			template: map[string]string{sReloadKey: "x", cmAutoKey: "true", autoKey: "true", cmExcludeKey: "app"}, silent: true,
			problems: []string{
				`annotation "` + cmAutoKey + `" on the pod template has no effect beside those of the workload: put it into metadata.annotations of the workload`,
				`annotation "` + cmExcludeKey + `" on the pod template has no effect: put it into metadata.annotations of the workload`,
				`annotation "` + sReloadKey + `" on the pod template has no effect beside those of the workload: put it into metadata.annotations of the workload`,
				`annotation "` + autoKey + `" on the pod template has no effect beside those of the workload: put it into metadata.annotations of the workload`,
			},
		},
		"template overridden by an empty value": {
			reason: "As in Reloader, it counts for its kind; the author learns it.", workload: map[string]string{cmAutoKey: ""}, template: map[string]string{autoKey: "true"},
			tracked:  []reference.Ref{secret("app")},
			problems: []string{`annotation "` + cmAutoKey + `" is empty and enables nothing: write "true" or "false", or remove it`},
		},
		"template overridden by an empty list": {
			reason: "As in Reloader, it counts for its kind; the author learns it.", workload: map[string]string{cmReloadKey: " ,"}, template: map[string]string{autoKey: "true"},
			tracked:  []reference.Ref{secret("app")},
			problems: []string{`annotation "` + cmReloadKey + `" is empty and hides those of the pod template: list names, or remove it`},
		},
		"list of the template overridden by an empty one": {
			reason: "The author learns it.", workload: map[string]string{cmReloadKey: ""}, template: map[string]string{cmReloadKey: "app"}, silent: true,
			problems: []string{`annotation "` + cmReloadKey + `" is empty and hides those of the pod template: list names, or remove it`},
		},
		"empty list": {
			reason:   "It hides nothing: the pod template has others for Secrets only, or another annotation of the workload hides them.",
			workload: map[string]string{cmReloadKey: "", sReloadKey: "", sAutoKey: "true"}, template: map[string]string{sReloadKey: "x", sAutoKey: "true"},
			tracked: []reference.Ref{secret("app")},
		},
		"copies": {reason: "The same on both does no harm.", workload: map[string]string{cmAutoKey: "true"}, template: map[string]string{cmAutoKey: "true"}, tracked: []reference.Ref{configMap("absent"), configMap("app"), configMap("marked")}},
		"wrong values": {
			reason: "The valid rest works, each is reported.", workload: map[string]string{autoKey: "yes", cmAutoKey: "", searchKey: "True", sReloadKey: "a(,My_App,x", cmExcludeKey: "a.*,b"},
			tracked: []reference.Ref{secret("x")},
			problems: []string{
				`annotation "` + cmExcludeKey + `": item 1 is not tracked: the name "a.*" has '*' at position 3: only a-z, 0-9, '-' and '.' are allowed: this list has names, not expressions; correct or remove it`,
				`annotation "` + autoKey + `": "yes" is neither true nor false and enables nothing: write "true" or "false"`,
				`annotation "` + cmAutoKey + `" is empty and enables nothing: write "true" or "false", or remove it`,
				`annotation "` + searchKey + `": "True" enables nothing: write "true" or "false"`,
				`annotation "` + sReloadKey + `": item 1 is not tracked: the expression "a(" is invalid: missing closing ): correct or remove it`,
				`annotation "` + sReloadKey + `": item 2 is not tracked: the name "My_App" has 'M' at position 1: only a-z, 0-9, '-' and '.' are allowed: correct or remove it`,
			},
		},
		"only a wrong value": {
			reason: "It asks, though for nothing possible.", workload: map[string]string{autoKey: "on"},
			problems: []string{`annotation "` + autoKey + `": "on" is neither true nor false and enables nothing: write "true" or "false"`},
		},
		"misspelled and misplaced": {
			reason: "Each likely slip is a Problem.", silent: true,
			workload: map[string]string{
				"configmaps.reloader.stakater.com/reload": "app", "secret.exclude.reloader.stakater.com/reload": "x", "reloader.stakater.com/Auto": "true",
				"reloader.stakater.com/match": "true", "reloader.stakater.com/rollout-strategy": "restart", "deployment.reloader.stakater.com/pause-period": "1m",
			},
			problems: []string{
				`annotation "configmaps.reloader.stakater.com/reload" has no effect: use "` + cmReloadKey + `"`,
				`annotation "reloader.stakater.com/Auto" has no effect: use "` + autoKey + `"`,
				`annotation "secret.exclude.reloader.stakater.com/reload" has no effect: use "` + sExcludeKey + `"`,
				`annotation "reloader.stakater.com/match" on a workload has no effect: put it on the ConfigMap, Secret or SecretProviderClass`,
			},
		},
		"misspelled and misplaced, on the pod template": {
			reason: "Those of the template are read, too.", silent: true,
			template: map[string]string{
				"configmaps.reloader.stakater.com/reload": "app", "reloader.stakater.com/ignore": "true", "reloader.stakater.com/last-reloaded-from": "{}",
			},
			problems: []string{
				`annotation "configmaps.reloader.stakater.com/reload" has no effect: use "` + cmReloadKey + `"`,
				`annotation "reloader.stakater.com/ignore" on a workload has no effect: put it on the ConfigMap, Secret or SecretProviderClass`,
			},
		},
		"mistyped": {
			reason: "Two letters are swapped, missing, wrong or too many.", silent: true,
			workload: map[string]string{
				"configmap.reloader.stakater.com/relaod": "app", "secrt.reloader.stakater.com/reload": "app", "reloader.stakater.com/seaarch": "true",
				"reloader.stakater.com/other": "x",
			},
			problems: []string{
				`annotation "configmap.reloader.stakater.com/relaod" has no effect: use "` + cmReloadKey + `"`,
				`annotation "reloader.stakater.com/seaarch" has no effect: use "` + searchKey + `"`,
				`annotation "secrt.reloader.stakater.com/reload" has no effect: use "` + sReloadKey + `"`,
			},
		},
		"without the first label": {
			reason: "The first label of the name says which kind it is for.", silent: true,
			workload: map[string]string{
				"reloader.stakater.com/reload": "app", "exclude.reloader.stakater.com/reload": "x", "reloader.stakater.com/pause-period": "1m",
			},
			problems: []string{
				`annotation "exclude.reloader.stakater.com/reload" has no effect: use "` + cmExcludeKey + `" or "` + sExcludeKey + `"`,
				`annotation "reloader.stakater.com/pause-period" has no effect: use "deployment.reloader.stakater.com/pause-period"`,
				`annotation "reloader.stakater.com/reload" has no effect: use "` + cmReloadKey + `" or "` + sReloadKey + `"`,
			},
		},
		"all": {
			reason: "With --auto-reload-all, what says nothing is automatic.", dialect: annotation.Stakater{AutoReloadAll: true},
			tracked: []reference.Ref{configMap("absent"), configMap("app"), configMap("marked"), secret("app")},
		},
		"all, but for one kind": {
			reason: "A typed no takes its kind out.", dialect: annotation.Stakater{AutoReloadAll: true}, workload: map[string]string{cmAutoKey: "false"},
			tracked: []reference.Ref{secret("app")},
		},
		"all, an empty value": {
			reason: "As in Reloader, it is as good as none.", dialect: annotation.Stakater{AutoReloadAll: true}, workload: map[string]string{sAutoKey: ""},
			tracked:  []reference.Ref{configMap("absent"), configMap("app"), configMap("marked"), secret("app")},
			problems: []string{`annotation "` + sAutoKey + `" is empty and enables nothing: write "true" or "false", or remove it`},
		},
		"all, a wrong value": {
			reason: "As in Reloader, the flag is for workloads without the annotation.", dialect: annotation.Stakater{AutoReloadAll: true},
			workload: map[string]string{autoKey: "yes", sReloadKey: "x"}, tracked: []reference.Ref{secret("x")},
			problems: []string{`annotation "` + autoKey + `": "yes" is neither true nor false and enables nothing: write "true" or "false"`},
		},
		"all, a wrong value of one kind": {
			reason: "The other kind is not affected.", dialect: annotation.Stakater{AutoReloadAll: true}, workload: map[string]string{cmAutoKey: "yes"},
			tracked:  []reference.Ref{secret("app")},
			problems: []string{`annotation "` + cmAutoKey + `": "yes" is neither true nor false and enables nothing: write "true" or "false"`},
		},
		"all, but not this one": {reason: "An explicit no wins.", dialect: annotation.Stakater{AutoReloadAll: true}, workload: map[string]string{autoKey: "F"}, silent: true},
		"without secrets": {
			reason: "The kind is not looked at; a list of it is reported.", dialect: annotation.Stakater{Without: []reference.Kind{reference.Secret}},
			workload: map[string]string{autoKey: "true", sReloadKey: "x"}, tracked: []reference.Ref{configMap("absent"), configMap("app"), configMap("marked")},
			problems: []string{`annotation "` + sReloadKey + `" has no effect: this installation does not handle secrets (--resources-to-ignore or --secrets=false)`},
		},
		"without secrets, an empty list": {
			reason: "It hides nothing that counts.", dialect: annotation.Stakater{Without: []reference.Kind{reference.Secret}},
			workload: map[string]string{sReloadKey: ""}, template: map[string]string{autoKey: "true"},
			tracked: []reference.Ref{configMap("absent"), configMap("app"), configMap("marked")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.dialect.Keys = annotation.NewStakaterKeys()
			src := annotation.Source{Workload: tc.workload, Template: tc.template, References: used()}
			intent, problems := annotation.Parse(src, tc.dialect)
			assert.Equal(t, !tc.silent, intent.Asked, tc.reason)
			var messages []string
			for _, p := range problems {
				messages = append(messages, p.Message)
			}
			assert.ElementsMatch(t, tc.problems, messages, tc.reason)
			assertBounded(t, problems)
			assert.Equal(t, len(intent.Selections) > 0, intent.Dynamic, "what it tracks depends on config objects where it selects any")
			intent, problems = annotation.Resolve(intent, shop(), tc.recorded, src.References)
			assert.Empty(t, problems)
			assert.Equal(t, tc.tracked, intent.Refs(), tc.reason)
		})
	}
}

func TestWrongItemOfAnExcludeListHidesNoOther(t *testing.T) {
	t.Parallel()
	intent, problems := annotation.Parse(annotation.Source{
		Workload: map[string]string{autoKey: "true", cmExcludeKey: "An App,app"}, References: used(),
	}, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	require.Len(t, problems, 1)
	intent, _ = annotation.Resolve(intent, shop(), recorded{}, used())
	assert.NotContains(t, intent.Tracked, configMap("app"))
	assert.Contains(t, intent.Tracked, configMap("marked"))
}

func TestFirstMisspeltKeysOfReloaderAreReported(t *testing.T) {
	t.Parallel()
	workload := map[string]string{autoKey: "true"}
	for _, key := range []string{"auot", "aut", "autoo", "searc", "searh", "serch"} {
		workload["reloader.stakater.com/"+key] = "true"
	}
	_, problems := annotation.Parse(annotation.Source{Workload: workload, References: used()}, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	require.Len(t, problems, 5, "a workload may have thousands")
	assert.Equal(t, `annotation "reloader.stakater.com/auot" has no effect: use "reloader.stakater.com/auto"`, problems[0].Message)
	assert.Contains(t, problems[4].Message, "searh")
}

func TestStakaterTriggers(t *testing.T) {
	t.Parallel()
	src := annotation.Source{Workload: map[string]string{cmReloadKey: "app", configMapsKey: "app,sap", autoKey: "true"}}
	created := annotation.Trigger{OnCreate: true, AtOnce: true, AtOnceOnCreate: true}
	all := created
	all.OnDelete, all.OnMissing, all.AtOnceOnDelete = true, true, true
	for _, tc := range []struct {
		create, del bool
		want        annotation.Trigger
	}{{want: annotation.Trigger{AtOnce: true}}, {create: true, want: created}, {create: true, del: true, want: all}} {
		dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.create, ReloadOnDelete: tc.del}
		intent, _ := annotation.Parse(annotation.Source{Workload: map[string]string{cmReloadKey: "app"}}, dialect)
		intent, _ = annotation.Resolve(intent, shop(), recorded{}, nil)
		assert.Equal(t, map[reference.Ref]annotation.Trigger{configMap("app"): tc.want}, intent.Tracked, "a modification always triggers, the rest by flag")
	}
	sap := annotation.SAP{Keys: annotation.DefaultKeys()}
	intent, _ := annotation.Parse(src, sap, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	both := annotation.Trigger{OnCreate: true, OnDelete: true}
	resolved, _ := annotation.Resolve(intent, cluster{configMap("app"): {Ignored: true}, configMap("sap"): {Ignored: true}}, recorded{}, nil)
	assert.Equal(t, map[reference.Ref]annotation.Trigger{configMap("app"): both, configMap("sap"): both}, resolved.Tracked,
		"an ignore annotation governs only what its dialect tracks")
	assert.Equal(t, []reference.Ref{configMap("app"), configMap("sap")}, intent.Refs(), "the unresolved Intent is not written to")
}

// Of an object that nothing names nothing is recorded before it exists: its creation triggers in another way.
func TestStakaterTriggersOfUnnamedObjects(t *testing.T) {
	t.Parallel()
	named := annotation.Trigger{OnCreate: true, AtOnce: true, AtOnceOnCreate: true}
	appears := named
	appears.OnAppear = true
	for name, tc := range map[string]struct {
		workload  map[string]string
		onCreate  bool
		tracked   reference.Ref
		want      annotation.Trigger
		appearing bool
	}{
		"expression":                         {map[string]string{cmReloadKey: "ap.*"}, true, configMap("app"), appears, true},
		"mark":                               {map[string]string{searchKey: "true"}, true, configMap("marked"), appears, true},
		"name":                               {map[string]string{cmReloadKey: "app"}, true, configMap("app"), named, false},
		"reference":                          {map[string]string{autoKey: "true"}, true, configMap("app"), named, false},
		"expression, creations do not count": {map[string]string{cmReloadKey: "ap.*"}, false, configMap("app"), annotation.Trigger{AtOnce: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.onCreate}
			intent, _ := annotation.Parse(annotation.Source{Workload: tc.workload, References: used()}, dialect)
			assert.Equal(t, tc.appearing, intent.Appearing())
			intent, _ = annotation.Resolve(intent, shop(), recorded{}, used())
			assert.Equal(t, tc.want, intent.Tracked[tc.tracked])
		})
	}
}

func TestStakaterTraits(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("team=a")
	require.NoError(t, err)
	plain := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
	selecting := annotation.Stakater{Keys: annotation.NewStakaterKeys(), Selector: selector}
	own := annotation.StakaterKeys{Match: "a/m", Ignore: "a/i"}
	tests := map[string]struct {
		reason              string
		dialect             annotation.Stakater
		labels, annotations map[string]string
		want                annotation.Traits
	}{
		"none":           {reason: "Most objects have none.", dialect: plain},
		"marked":         {reason: "Exactly true.", dialect: plain, annotations: map[string]string{"reloader.stakater.com/match": "true"}, want: annotation.Traits{Marked: true}},
		"nearly marked":  {reason: "Exactly true.", dialect: plain, annotations: map[string]string{"reloader.stakater.com/match": "True", "reloader.stakater.com/ignore": "1"}},
		"ignored":        {reason: "Exactly true.", dialect: plain, annotations: map[string]string{"reloader.stakater.com/ignore": "true"}, want: annotation.Traits{Ignored: true}},
		"selected":       {reason: "The labels fit.", dialect: selecting, labels: map[string]string{"team": "a"}},
		"not selected":   {reason: "An object that the selector leaves out triggers nothing.", dialect: selecting, labels: map[string]string{"team": "b"}, want: annotation.Traits{Ignored: true, Unselected: true}},
		"keys by a flag": {reason: "The names are configurable.", dialect: annotation.Stakater{Keys: own}, annotations: map[string]string{"a/m": "true", "a/i": "true"}, want: annotation.Traits{Marked: true, Ignored: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tc.dialect.Traits(reference.ConfigMap, tc.labels, tc.annotations), tc.reason)
		})
	}
	assert.True(t, selecting.LooksAt("team"), "the selector names this label")
	assert.False(t, selecting.LooksAt("tier"), "the selector does not name it")
	assert.False(t, plain.LooksAt("team"), "there is no selector")
}

func TestStakaterKeys(t *testing.T) {
	t.Parallel()
	keys := annotation.NewStakaterKeys()
	keys.Auto, keys.Match, keys.Ignore, keys.ConfigMap.Reload = "a/auto", "a/match", "a/ignore", "a/cm"
	for _, key := range []string{"a/auto", "a/match", "a/ignore", "a/cm", sReloadKey, "reloader.stakater.com/last-reloaded-from", "x.reloader.stakater.com/y"} {
		assert.True(t, keys.Has(key), key)
	}
	assert.False(t, keys.Has("a/other"), "the annotation is not one of Reloader")
	for _, key := range []string{"a/match", "a/ignore"} {
		assert.True(t, keys.Marks([]byte(key), []byte("true")), key)
		for _, value := range []string{"", "false", "True", "true ", strings.Repeat("x", 200<<10)} {
			assert.False(t, keys.Marks([]byte(key), []byte(value)), "%s, %d bytes", key, len(value))
		}
	}
	for _, key := range []string{"a/other", "a/auto", "reloader.stakater.com/match", "reloader.stakater.com/matsch"} {
		assert.False(t, keys.Marks([]byte(key), []byte("true")), "%s: no key of a config object", key)
	}
	intent, problems := annotation.Parse(annotation.Source{Workload: map[string]string{"a/cm": "x", autoKey: "true"}}, annotation.Stakater{Keys: keys})
	assert.Empty(t, problems)
	intent, _ = annotation.Resolve(intent, shop(), recorded{}, nil)
	assert.Equal(t, []reference.Ref{configMap("x")}, intent.Refs())
}

func TestKindsThatAreNotHandledAreNotRead(t *testing.T) {
	t.Parallel()
	all := annotation.Stakater{SecretProviderClasses: true}
	assert.Equal(t, all.Kinds(), all.HandledKinds())
	some := annotation.Stakater{SecretProviderClasses: true, Without: []reference.Kind{reference.Secret}}
	assert.Equal(t, []reference.Kind{reference.ConfigMap, reference.SecretProviderClass}, some.HandledKinds())
	assert.Len(t, some.Kinds(), 3, "annotations for the others are Problems")
}

// Without the flag SecretProviderClasses are not handled; their annotations are reported, and the others work.
func TestAnnotationsForSecretProviderClassesAreReported(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"secretproviderclass.reloader.stakater.com/auto", "secretproviderclass.reloader.stakater.com/reload",
		"secretproviderclasses.exclude.reloader.stakater.com/reload",
	} {
		dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
		want := []annotation.Problem{{Message: fmt.Sprintf("annotation %q has no effect: this installation does not handle SecretProviderClasses (--enable-csi-integration)", key)}}
		intent, problems := dialect.Parse(annotation.Source{Workload: map[string]string{key: "vault", sAutoKey: "true"}, References: used()})
		assert.Equal(t, want, problems)
		assert.Len(t, intent.Selections, 1)
		_, problems = dialect.Parse(annotation.Source{Template: map[string]string{key: "vault"}})
		assert.Equal(t, want, problems, "on the pod template")
	}
}
