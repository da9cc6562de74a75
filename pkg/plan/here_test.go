package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// withoutSecrets is --secrets=false.
func withoutSecrets(in *plan.Input) {
	dialect := in.Reloader.Dialect
	dialect.Without = append(dialect.Without, reference.Secret)
	in.Here.WithoutSecrets = true
	in.Here.Dialects = []annotation.Dialect{annotation.SAP{Keys: in.Here.Keys, WithoutSecrets: true}, dialect}
}

// Flags of this program that Reloader does not have.
func TestReasonsOfOurFlags(t *testing.T) {
	t.Parallel()
	readsSecret := `, envFrom: [{secretRef: {name: pull}}]}]`
	ignoredByBoth := func(in *plan.Input) {
		in.Reloader.Dialect.Without = []reference.Kind{reference.Secret}
		withoutSecrets(in)
	}
	tier := func(value string) string {
		return strings.Replace(deployment(auto, reads), "name: cart\n", "name: cart\n  labels: {tier: "+value+"}\n", 1)
	}
	selects := func(in *plan.Input) { in.Here.Scope.ObjectSelector = labels.SelectorFromSet(labels.Set{"tier": "web"}) }
	tests := map[string]struct {
		manifest string
		adapt    func(*plan.Input)
		want     []string
	}{
		"secrets=false": {deployment(auto, readsSecret), withoutSecrets, []string{"secrets: secret/pull modified restart nothing"}},
		"secrets=false, a list": {
			deployment(`secret.`+domain+`reload: pull`, noRefs), withoutSecrets,
			[]string{"problem", "secrets: secret/pull modified restart nothing"},
		},
		"secrets=false, a ConfigMap": {deployment(auto, reads), withoutSecrets, nil},
		"secrets=false, a list of SAP's": {
			deployment(`pod-reloader.cs.sap.com/secrets: pull`, noRefs), withoutSecrets, []string{"problem"},
		},
		"secrets=false, and ignored by Reloader": {deployment(auto, readsSecret), ignoredByBoth, nil},
		"object-selector, selected":              {tier("web"), selects, nil},
		"object-selector, other labels":          {tier("db"), selects, []string{"object-selector: configmap/app modified restart nothing"}},
		"object-selector, another namespace": {tier("db"), func(in *plan.Input) {
			selects(in)
			in.Here.Scope.Ignored = []string{"shop"}
		}, []string{"namespace: configmap/app modified restart nothing"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, tc.manifest)
			tc.adapt(&in)
			assert.Equal(t, tc.want, summary(plan.Compare(in)))
		})
	}
}

// The present time is noon.
func TestPauseEndedAtTheStartIsADifference(t *testing.T) {
	t.Parallel()
	paused := func(at string) string {
		manifest := deployment(auto+`, deployment.`+domain+`pause-period: 5m, deployment.`+domain+`paused-at: "`+at+`"`, reads)
		return strings.Replace(manifest, "spec:\n  template", "spec:\n  paused: true\n  template", 1)
	}
	late, runs := paused("2026-01-01T00:00:00Z"), paused("2026-01-01T11:59:00Z")
	tests := map[string]struct {
		manifest string
		adapt    func(*plan.Input)
		want     []string
	}{
		"over":             {manifest: late, want: []string{"paused"}},
		"not over":         {manifest: paused("2026-01-01T11:56:00Z")},
		"no time":          {manifest: paused("soon"), want: []string{"paused"}},
		"runs, too long":   {manifest: strings.Replace(runs, "5m", "1000h", 1), want: []string{"pause-period", "paused", "problem"}},
		"runs, removed":    {manifest: strings.Replace(runs, "deployment."+domain+"pause-period: 5m, ", "", 1), want: []string{"paused"}},
		"resumed":          {manifest: strings.Replace(late, "paused: true", "paused: false", 1)},
		"paused by a user": {manifest: strings.Replace(late, `, deployment.`+domain+`paused-at: "2026-01-01T00:00:00Z"`, "", 1)},
		"another kind":     {manifest: strings.Replace(late, "Deployment", "StatefulSet", 1)},
		"excluded by a label": {
			manifest: strings.Replace(late, "name: cart\n", "name: cart\n  labels: {pod-reloader.cs.sap.com/ignored: \"true\"}\n", 1),
			want:     []string{"excluded-label: configmap/app modified restart nothing", "paused"},
		},
		"in another namespace": {
			manifest: late, adapt: func(in *plan.Input) { in.Here.Scope.Ignored = []string{"shop"} },
			want: []string{"namespace: configmap/app modified restart nothing"},
		},
		"with another key": {
			manifest: late, adapt: func(in *plan.Input) {
				dialect := in.Reloader.Dialect
				dialect.Keys.PausedAt = "example.com/paused-at"
				speak(in, dialect)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, tc.manifest)
			in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			if tc.adapt != nil {
				tc.adapt(&in)
			}
			report := plan.Compare(in)
			assert.Equal(t, tc.want, summary(report))
			for _, g := range report.Groups {
				if g.Reason == "paused" {
					assert.Contains(t, g.Reloader, "it still runs", "a running pause has the same reason")
				}
			}
		})
	}
}

func TestWorkloadThatNeitherProgramHandlesIsNotComparedForItsLabels(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(auto, reads))
	in.Reloader.Namespaces = []string{"bank"}
	in.Here.Scope.ObjectSelector = labels.SelectorFromSet(labels.Set{"tier": "web"})
	assert.Zero(t, plan.Compare(in).Compared)
}
