package plan_test

import (
	"strings"
	"testing"

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

func TestWorkloadThatNeitherProgramHandlesIsNotComparedForItsLabels(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(auto, reads))
	in.Reloader.Namespaces = []string{"bank"}
	in.Here.Scope.ObjectSelector = labels.SelectorFromSet(labels.Set{"tier": "web"})
	assert.Zero(t, plan.Compare(in).Compared)
}
