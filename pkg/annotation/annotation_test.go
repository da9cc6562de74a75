package annotation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func configMap(name string) reference.Ref {
	return reference.Ref{Kind: reference.ConfigMap, Name: name}
}

func secret(name string) reference.Ref {
	return reference.Ref{Kind: reference.Secret, Name: name}
}

func keysOf(t testing.TB, prefix string) annotation.Keys {
	t.Helper()
	keys, err := annotation.NewKeys(prefix)
	require.NoError(t, err)
	return keys
}

func TestNewKeys(t *testing.T) {
	t.Parallel()
	want := annotation.Keys{
		ConfigMaps:         "pod-reloader.cs.sap.com/configmaps",
		Secrets:            "pod-reloader.cs.sap.com/secrets",
		Referents:          "pod-reloader.cs.sap.com/referents",
		Checksum:           "pod-reloader.cs.sap.com/referent-checksum",
		ConfigHash:         "pod-reloader.cs.sap.com/config-hash",
		ConfigRestart:      "pod-reloader.cs.sap.com/config-restart",
		ConfigRecord:       "pod-reloader.cs.sap.com/config-record",
		LastReload:         "pod-reloader.cs.sap.com/last-reload",
		RecreatedFrom:      "pod-reloader.cs.sap.com/recreated-from",
		RecreationCanceled: "pod-reloader.cs.sap.com/recreation-canceled",
		IgnoredLabel:       "pod-reloader.cs.sap.com/ignored",
		DisabledLabel:      "pod-reloader.cs.sap.com/disabled",
	}
	assert.Equal(t, want, keysOf(t, annotation.DefaultPrefix))
	assert.Equal(t, want, annotation.DefaultKeys(), "these names are what SAP's users have in their manifests")
	assert.Equal(t, want, keysOf(t, "pod-reloader.cs.sap.com"), "the slash at the end may be left out")
	assert.Equal(t, "example.org/configmaps", keysOf(t, "example.org/").ConfigMaps)

	tests := map[string]struct {
		reason string
		prefix string
		err    string
	}{
		"empty":       {reason: "Annotations without a prefix belong to users.", prefix: "", err: "the name is empty"},
		"slash alone": {reason: "That is no prefix either.", prefix: "/", err: "the name is empty"},
		"two slashes": {reason: "The API server would refuse every annotation.", prefix: "example.org//", err: "'/' at position 12"},
		"a path":      {reason: "The API server would refuse every annotation.", prefix: "example.org/a", err: "'/' at position 12"},
		"upper case":  {reason: "The API server would refuse every annotation.", prefix: "Example.org/", err: "'E' at position 1"},
		"too long":    {reason: "The error is bounded.", prefix: strings.Repeat("a", 254), err: "the limit is 253"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, err := annotation.NewKeys(tc.prefix)
			require.ErrorContains(t, err, tc.err, tc.reason)
			require.ErrorContains(t, err, "the annotation prefix ", "the error says what was wrong")
			assert.Less(t, len(err.Error()), 512)
			assert.Zero(t, keys)
		})
	}
}

func TestSameLists(t *testing.T) {
	t.Parallel()
	intent := annotation.Intent{ConfigMaps: []string{"a", "b"}, Secrets: []string{"c"}}
	tests := map[string]struct {
		reason string
		other  annotation.Intent
		want   bool
	}{
		"equal":        {reason: "Nothing was edited.", other: annotation.Intent{ConfigMaps: []string{"a", "b"}, Secrets: []string{"c"}}, want: true},
		"order":        {reason: "The lists are sets.", other: annotation.Intent{ConfigMaps: []string{"b", "a"}, Secrets: []string{"c"}}, want: true},
		"repetition":   {reason: "The lists are sets.", other: annotation.Intent{ConfigMaps: []string{"a", "b", "a"}, Secrets: []string{"c", "c"}}, want: true},
		"one more":     {reason: "A list was extended.", other: annotation.Intent{ConfigMaps: []string{"a", "b", "c"}, Secrets: []string{"c"}}},
		"one less":     {reason: "A list was cut.", other: annotation.Intent{ConfigMaps: []string{"a"}, Secrets: []string{"c"}}},
		"another":      {reason: "As many, but not the same.", other: annotation.Intent{ConfigMaps: []string{"a", "x"}, Secrets: []string{"c"}}},
		"moved":        {reason: "A ConfigMap is not a Secret.", other: annotation.Intent{ConfigMaps: []string{"a", "c"}, Secrets: []string{"b"}}},
		"secrets only": {reason: "Each list counts.", other: annotation.Intent{ConfigMaps: []string{"a", "b"}}},
		"tracked only": {reason: "What another dialect tracks is not in the lists.", other: annotation.Intent{
			ConfigMaps: []string{"a", "b"}, Secrets: []string{"c"}, Tracked: map[reference.Ref]annotation.Trigger{secret("x"): {}},
		}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, intent.SameLists(tc.other), tc.reason)
			assert.Equal(t, tc.want, tc.other.SameLists(intent), tc.reason)
		})
	}
	assert.True(t, annotation.Intent{}.SameLists(annotation.Intent{ConfigMaps: []string{}}), "nothing is nothing")
}

// fixed is a dialect that always says the same.
type fixed struct {
	intent   annotation.Intent
	problems []annotation.Problem
}

func (f fixed) Parse(annotation.Source) (annotation.Intent, []annotation.Problem) {
	return f.intent, f.problems
}

func TestParseUnion(t *testing.T) {
	t.Parallel()
	both, create, none := annotation.Trigger{OnCreate: true, OnDelete: true}, annotation.Trigger{OnCreate: true}, annotation.Trigger{}
	sap := fixed{
		intent: annotation.Intent{
			Asked: true, Tracked: map[reference.Ref]annotation.Trigger{configMap("a"): both, secret("b"): create},
			ConfigMaps: []string{"a"}, Secrets: []string{"b"},
		},
		problems: []annotation.Problem{{Message: "One"}},
	}
	other := fixed{
		intent: annotation.Intent{
			Asked:   true,
			Tracked: map[reference.Ref]annotation.Trigger{configMap("a"): none, secret("b"): {OnDelete: true}, secret("c"): none},
		},
		problems: []annotation.Problem{{Message: "Two"}},
	}
	silent := fixed{problems: []annotation.Problem{{Message: "Three"}}}
	tests := map[string]struct {
		reason   string
		dialects []annotation.Dialect
		want     annotation.Intent
		problems []annotation.Problem
	}{
		"none":   {reason: "No annotation asks for reloads."},
		"silent": {reason: "A dialect that is not spoken asks for nothing, but may have something to say.", dialects: []annotation.Dialect{silent}, problems: silent.problems},
		"one":    {reason: "One dialect alone is what it says.", dialects: []annotation.Dialect{sap, fixed{}}, want: sap.intent, problems: sap.problems},
		"two": {
			reason:   "A Ref that both track triggers on what either lets it.",
			dialects: []annotation.Dialect{sap, other},
			want: annotation.Intent{
				Asked: true, Tracked: map[reference.Ref]annotation.Trigger{configMap("a"): both, secret("b"): both, secret("c"): none},
				ConfigMaps: []string{"a"}, Secrets: []string{"b"},
			},
			problems: []annotation.Problem{{Message: "One"}, {Message: "Two"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, problems := annotation.Parse(annotation.Source{}, tc.dialects...)
			assert.Equal(t, tc.want, intent, tc.reason)
			assert.Equal(t, tc.problems, problems, tc.reason)
		})
	}
	assert.Equal(t, map[reference.Ref]annotation.Trigger{configMap("a"): both, secret("b"): create}, sap.intent.Tracked,
		"what a dialect returned is not written to")
	assert.Equal(t, []reference.Ref{configMap("a"), secret("b")}, sap.intent.Refs(), "Refs are sorted")
	assert.Empty(t, annotation.Intent{}.Refs())
}

func TestParseTracksAtMostAThousandRefs(t *testing.T) {
	t.Parallel()
	pattern := map[reference.Ref]annotation.Trigger{}
	for i := range 600 {
		pattern[secret(fmt.Sprintf("a-%04d", i))] = annotation.Trigger{}
	}
	pattern[secret("needed")] = annotation.Trigger{}
	pattern[secret("optional")] = annotation.Trigger{}
	owner := reference.Ref{Kind: "widgets.example.org", Name: "owner"}
	pattern[owner] = annotation.Trigger{}
	listed := annotation.Intent{Asked: true, Tracked: map[reference.Ref]annotation.Trigger{}}
	for i := range 500 {
		name := fmt.Sprintf("z-%04d", i)
		listed.ConfigMaps = append(listed.ConfigMaps, name)
		listed.Tracked[configMap(name)] = annotation.Trigger{}
	}
	listed.Secrets = []string{"z-secret"}
	listed.Tracked[secret("z-secret")] = annotation.Trigger{}
	intent, problems := annotation.Parse(annotation.Source{References: []reference.Reference{
		{Ref: secret("needed")}, {Ref: secret("optional"), Optional: true},
	}}, fixed{intent: annotation.Intent{Tracked: pattern, Dynamic: true}}, fixed{intent: listed})
	assert.Len(t, intent.Tracked, 1000)
	assert.Equal(t, []annotation.Problem{{Message: "104 config objects are not tracked: a workload can track 1000; list fewer"}}, problems)
	for _, ref := range []reference.Ref{secret("needed"), owner, configMap("z-0499"), secret("z-secret"), secret("a-0496")} {
		assert.Contains(t, intent.Tracked, ref)
	}
	for _, ref := range []reference.Ref{secret("a-0497"), secret("optional")} {
		assert.NotContains(t, intent.Tracked, ref, "what the pods need, what is listed, and custom resources come first")
	}
	assert.True(t, intent.Dynamic, "a different config-hash proves no change: not all objects are tracked")
	assert.Len(t, intent.ConfigMaps, 500, "the digest of SAP's lists is over the lists as written")
}

func TestAtOnceLeavesOutWhatDoesNotTriggerAtOnce(t *testing.T) {
	t.Parallel()
	app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	both := annotation.Intent{
		Asked: true, ConfigMaps: []string{"app"},
		Tracked: map[reference.Ref]annotation.Trigger{app: {OnCreate: true}, db: {AtOnce: true}},
	}
	assert.Equal(t, annotation.Intent{
		Asked: true, Tracked: map[reference.Ref]annotation.Trigger{db: {AtOnce: true}}, Dynamic: true,
	}, both.AtOnce(), "the config-hash is over both: it proves no change of one")
	assert.Len(t, both.Tracked, 2, "it stays as it is")
	next := both.NotAtOnce()
	assert.Equal(t, map[reference.Ref]annotation.Trigger{app: {OnCreate: true}, db: {}}, next.Tracked)
	assert.Equal(t, both.ConfigMaps, next.ConfigMaps)
	assert.Equal(t, annotation.Trigger{AtOnce: true}, both.Tracked[db], "it stays as it is")
	one := both.AtOnce()
	one.Dynamic = false
	assert.Equal(t, one, one.AtOnce(), "where all triggers at once, the config-hash is compared")
}

// Our lists let creations and deletions trigger, but nothing at once; Reloader's annotations, without their flags, only modifications.
func TestAtOnceKeepsWhatEachDialectLetsTrigger(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	for name, tc := range map[string]struct {
		flags          bool
		together, once annotation.Trigger
	}{
		"without the flags": {
			together: annotation.Trigger{OnCreate: true, OnDelete: true, AtOnce: true},
			once:     annotation.Trigger{AtOnce: true},
		},
		"with the flags": {
			flags: true,
			together: annotation.Trigger{
				OnCreate: true, OnDelete: true, OnMissing: true, AtOnce: true, AtOnceOnCreate: true, AtOnceOnDelete: true,
			},
			once: annotation.Trigger{
				OnCreate: true, OnDelete: true, OnMissing: true, AtOnce: true, AtOnceOnCreate: true, AtOnceOnDelete: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, _ := annotation.Parse(
				annotation.Source{Workload: map[string]string{cmReloadKey: "app", configMapsKey: "app"}},
				annotation.SAP{Keys: keysOf(t, annotation.DefaultPrefix)},
				annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.flags, ReloadOnDelete: tc.flags},
			)
			both, _ := annotation.Resolve(intent, annotation.Listed{app: {}}, recorded{}, nil)
			require.Equal(t, map[reference.Ref]annotation.Trigger{app: tc.together}, both.Tracked)
			once := both.AtOnce()
			assert.Equal(t, map[reference.Ref]annotation.Trigger{app: tc.once}, once.Tracked)
			assert.Equal(t, []string{"app"}, once.ConfigMaps, "the config-hash is over the same objects")
			assert.Equal(t, map[reference.Ref]annotation.Trigger{app: tc.together}, both.Tracked, "it stays as it is")
			next := annotation.Trigger{OnCreate: true, OnDelete: true, OnMissing: tc.flags}
			assert.Equal(t, map[reference.Ref]annotation.Trigger{app: next}, both.NotAtOnce().Tracked)
		})
	}
}
