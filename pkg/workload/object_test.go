package workload

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

func object(t testing.TB, kind, text string) Object {
	t.Helper()
	found := NewKinds(Builtin()...).Find(kind)
	require.Len(t, found, 1)
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &raw))
	return Object{Kind: found[0], Raw: raw}
}

func template(t testing.TB, text string) Object {
	t.Helper()
	return object(t, "deployment", `{"spec":{"template":`+text+`}}`)
}

func TestSameTemplate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"equal":                        {`{"spec":{"a":[1,{"b":true}]}}`, `{"spec":{"a":[1,{"b":true}]}}`, true},
		"another spec":                 {`{"spec":{"a":[1]}}`, `{"spec":{"a":[2]}}`, false},
		"an element more":              {`{"spec":{"a":[1]}}`, `{"spec":{"a":[1,1]}}`, false},
		"another order of a list":      {`{"spec":{"a":[1,2]}}`, `{"spec":{"a":[2,1]}}`, false},
		"another type":                 {`{"spec":{"a":{}}}`, `{"spec":{"a":[]}}`, false},
		"one of ours":                  {`{"metadata":{"annotations":{"x":"1"}}}`, `{"metadata":{"annotations":{"x":"2"}}}`, true},
		"ours and nothing":             {`{"metadata":{"annotations":{"x":"1"}}}`, `{}`, true},
		"ours beside another":          {`{"metadata":{"annotations":{"x":"1","y":"1"}}}`, `{"metadata":{"annotations":{"y":"1"}}}`, true},
		"another annotation":           {`{"metadata":{"annotations":{"y":"1"}}}`, `{"metadata":{"annotations":{"y":"2"}}}`, false},
		"empty annotations equal none": {`{"metadata":{"annotations":{}}}`, `{"metadata":{}}`, true},
		"null annotations equal none":  {`{"metadata":{"annotations":null}}`, `{}`, true},
		"null metadata equals none":    {`{"metadata":null}`, `{}`, true},
		"null time equals none":        {`{"metadata":{"creationTimestamp":null}}`, `{}`, true},
		"a label":                      {`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{}}`, false},
		"annotations that are no map":  {`{"metadata":{"annotations":["x"]}}`, `{"metadata":{"annotations":["y"]}}`, false},
		"no template on one side":      {`null`, `{}`, false},
		"no template on either":        {`null`, `"x"`, true},
		"ours that is no text counts":  {`{"metadata":{"annotations":{"x":1}}}`, `{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := template(t, c.a), template(t, c.b)
			before, _ := json.Marshal(a.Raw)
			assert.Equal(t, c.same, a.SameTemplate(b, "x"))
			assert.Equal(t, c.same, b.SameTemplate(a, "x"))
			after, _ := json.Marshal(a.Raw)
			assert.Equal(t, before, after, "comparing changes nothing")
		})
	}
}

func TestReading(t *testing.T) {
	t.Parallel()
	o := object(t, "deployment", `{"metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"5","generation":7,"creationTimestamp":"2026-01-02T03:04:05Z",
		"labels":{"l":"1"},"annotations":{"a":"1","b":2},"ownerReferences":[{"name":"x"},{"controller":true}]},
		"spec":{"template":{"metadata":{"annotations":{"t":"1"}}}}}`)
	assert.Equal(t, []string{"n", "ns", "u", "5"}, []string{o.Name(), o.Namespace(), o.UID(), o.ResourceVersion()})
	assert.EqualValues(t, 7, o.Generation())
	assert.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), o.Created())
	assert.Equal(t, map[string]string{"l": "1"}, o.Labels())
	assert.Equal(t, map[string]string{"a": "1"}, o.Annotations(), "what is no text is left out")
	assert.Equal(t, map[string]string{"t": "1"}, o.TemplateAnnotations())
	onWorkload, onTemplate := o.AnnotationSizes()
	assert.Equal(t, []int{2, 2}, []int{onWorkload, onTemplate}, "the bytes of keys and values")
	assert.True(t, o.HasTemplate(), "its spec has a template")
	assert.True(t, o.Controlled(), "an owner controls it")
	assert.False(t, o.Deleting(), "it has no time of deletion")
	require.NoError(t, o.Check())
	for _, text := range []string{`{}`, `{"metadata":null}`, `{"metadata":"x","spec":[]}`, `{"metadata":{"ownerReferences":{},"generation":"x"}}`} {
		o := object(t, "deployment", text)
		assert.Empty(t, o.Name())
		assert.Zero(t, o.Generation())
		assert.Zero(t, o.Created())
		assert.Empty(t, o.Annotations())
		assert.False(t, o.HasTemplate(), text)
		assert.False(t, o.Controlled(), text)
		require.Error(t, o.Check())
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]reference.Owner{
		`{}`:                                   nil,
		`{"metadata":{"ownerReferences":"x"}}`: nil,
		`{"metadata":{"ownerReferences":["x",{},null]}}`:  nil,
		`{"metadata":{"ownerReferences":[{"kind":"A"}]}}`: nil,
		`{"metadata":{"ownerReferences":[{"name":"a"}]}}`: nil,
		`{"metadata":{"ownerReferences":[{"kind":1,"name":"a"},{"apiVersion":"v1","kind":"Node","name":"n"},{"apiVersion":"a.io/v1","kind":"A","name":"a"}]}}`: {
			{Kind: "Node", Name: "n"}, {Group: "a.io", Kind: "A", Name: "a"},
		},
	} {
		assert.Equal(t, want, object(t, "deployment", text).Owners(), text)
	}
}

func TestCheckNamesThePart(t *testing.T) {
	t.Parallel()
	for text, part := range map[string]string{
		`{"metadata":{"annotations":[]},"spec":{"template":{}}}`: "metadata.annotations",
		`{"spec":"x"}`: "spec is not an object",
		`{"spec":{"template":{"metadata":{"annotations":"x"}}}}`: "spec.template.metadata.annotations",
		`{"spec":{}}`: "no pod template at spec.template",
	} {
		require.ErrorContains(t, object(t, "deployment", text).Check(), part)
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ kind, text, want string }{
		"rolls at once":            {"deployment", `{"spec":{}}`, ""},
		"paused":                   {"deployment", `{"spec":{"paused":true}}`, "paused"},
		"paused is no boolean":     {"deployment", `{"spec":{"paused":"yes"}}`, ""},
		"OnDelete":                 {"daemonset", `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`, "OnDelete"},
		"partition":                {"statefulset", `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}}`, "partition 2"},
		"partition 0":              {"statefulset", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`, ""},
		"CloneSet's partition":     {"statefulset", `{"spec":{"updateStrategy":{"partition":2}}}`, "partition 2"},
		"CloneSet's percentage":    {"statefulset", `{"spec":{"updateStrategy":{"partition":"50%"}}}`, "partition 50%"},
		"percentage":               {"daemonset", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":"100%"}}}}`, "partition 100%"},
		"percentage 0":             {"statefulset", `{"spec":{"updateStrategy":{"partition":"0%"}}}`, ""},
		"partition is no number":   {"statefulset", `{"spec":{"updateStrategy":{"partition":"half","rollingUpdate":{"partition":"2"}}}}`, ""},
		"CloneSet is paused":       {"statefulset", `{"spec":{"updateStrategy":{"paused":true,"partition":2}}}`, "paused"},
		"rolling update is paused": {"daemonset", `{"spec":{"updateStrategy":{"rollingUpdate":{"paused":true}}}}`, "paused"},
		"a CronJob":                {"cronjob", `{"spec":{}}`, "next scheduled run"},
		"nothing that can be read": {"statefulset", `{"spec":{"updateStrategy":"x"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, object(t, c.kind, c.text).Pending())
		})
	}
}

func TestReplaced(t *testing.T) {
	t.Parallel()
	for partition, want := range map[string][]int{
		`0`: {0, 1, 10}, `1`: {0, 0, 9}, `11`: {0, 0, 0}, `-1`: {0, 1, 10},
		`"0%"`: {0, 1, 10}, `"1%"`: {0, 0, 9}, `"50%"`: {0, 0, 5}, `"100%"`: {0, 0, 0}, `"1000%"`: {0, 0, 0}, `"x%"`: {0, 1, 10},
	} {
		o := object(t, "statefulset", `{"spec":{"updateStrategy":{"partition":`+partition+`}}}`)
		for i, pods := range []int{0, 1, 10} {
			assert.Equal(t, want[i], o.Replaced(pods), "%d pods with partition %s", pods, partition)
		}
	}
}

// A DeploymentConfig rolls out a new template by a trigger only. A missing list has that trigger by default.
func TestDeploymentConfigWithoutAConfigChangeTriggerReplacesNoPods(t *testing.T) {
	t.Parallel()
	const image = `{"type":"ImageChange","imageChangeParams":{"automatic":true}}`
	config, err := ParseKind("apps.openshift.io/v1/DeploymentConfig=spec.template")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		kind           Kind
		triggers, want string
	}{
		"the default":                 {config, `null`, ""},
		"ConfigChange":                {config, `[` + image + `,{"type":"ConfigChange"}]`, ""},
		"none":                        {config, `[]`, "no ConfigChange trigger"},
		"ImageChange only":            {config, `[` + image + `]`, "no ConfigChange trigger"},
		"nothing that can be read":    {config, `["ConfigChange"]`, "no ConfigChange trigger"},
		"no list":                     {config, `"ConfigChange"`, ""},
		"another kind has no trigger": {Deployment(), `[]`, ""},
	} {
		raw, err := skim.Decode([]byte(`{"spec":{"triggers":`+tc.triggers+`}}`), Shape(tc.kind))
		require.NoError(t, err)
		o := Object{Kind: tc.kind, Raw: raw.(map[string]any)}
		assert.Equal(t, tc.want, o.Pending(), name)
		assert.Equal(t, tc.want == "", o.Replaced(3) == 3, name)
	}
}

func TestKindsThatMakeJobsReplaceNoPods(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com/v1/CronJob=spec.run.template":                                                "next scheduled run",
		"example.com/v1/Backup=spec.jobTemplate.spec.template":                                    "next scheduled run",
		"apps.kruise.io/v1beta1/AdvancedCronJob=spec.template.jobTemplate.spec.template":          "next scheduled run",
		"apps.kruise.io/v1beta1/AdvancedCronJob=spec.template.broadcastJobTemplate.spec.template": "next scheduled run",
		"example.com/v1/Backup=spec.backupTemplate.spec.template":                                 "",
	} {
		kind, err := ParseKind(text)
		require.NoError(t, err)
		assert.Equal(t, want, Object{Kind: kind, Raw: map[string]any{}}.Pending(), text)
	}
}

// OpenKruise patches a running pod where only the metadata or images of its template differ.
func TestInPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ strategy, want string }{
		"no strategy":                {`null`, ""},
		"CloneSet replaces its pods": {`{"type":"ReCreate"}`, ""},
		"CloneSet if possible":       {`{"type":"InPlaceIfPossible"}`, "InPlaceIfPossible"},
		"CloneSet only":              {`{"type":"InPlaceOnly"}`, "InPlaceOnly"},
		"StatefulSet if possible":    {`{"type":"RollingUpdate","rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible"}}`, "InPlaceIfPossible"},
		"StatefulSet only":           {`{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly"}}`, "InPlaceOnly"},
		"DaemonSet if possible":      {`{"type":"RollingUpdate","rollingUpdate":{"rollingUpdateType":"InPlaceIfPossible"}}`, "InPlaceIfPossible"},
		"DaemonSet standard":         {`{"type":"RollingUpdate","rollingUpdate":{"rollingUpdateType":"Standard"}}`, ""},
		"OnDelete":                   {`{"type":"OnDelete","rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible"}}`, ""},
		"nothing that can be read":   {`{"type":["InPlaceOnly"],"rollingUpdate":"InPlaceOnly"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := object(t, "statefulset", `{"spec":{"updateStrategy":`+c.strategy+`}}`)
			assert.Equal(t, c.want, o.InPlace())
			assert.Equal(t, c.want, o.Summary().InPlace())
		})
	}
}

func TestDeletingIsWhatHasADeletionTimestamp(t *testing.T) {
	t.Parallel()
	assert.True(t, object(t, "deployment", `{"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}}`).Deleting(), "it has a time")
	assert.False(t, object(t, "deployment", `{"metadata":{"deletionTimestamp":null}}`).Deleting(), "null is no time")
}

func TestReferencesOfWrongTypes(t *testing.T) {
	t.Parallel()
	for text, part := range map[string]string{
		`{"spec":"x"}`:               "spec.template.spec is not an object",
		`{"spec":{"containers":{}}}`: "spec.template.spec.containers is not a list",
		`{"spec":{"volumes":"x"}}`:   "spec.template.spec.volumes is not a list",
	} {
		_, err := template(t, text).References()
		require.ErrorContains(t, err, part)
	}
	references, err := template(t, `{"spec":{"volumes":"x","imagePullSecrets":[{"name":"s"},5,{"name":5}]}}`).References()
	require.Error(t, err)
	require.Len(t, references, 1, "the valid rest is read")
	references, err = template(t, `{"spec":null}`).References()
	require.NoError(t, err)
	assert.Empty(t, references)
}
