package annotation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func class(name string) reference.Ref {
	return reference.Ref{Kind: reference.SecretProviderClass, Name: name}
}

func TestSecretProviderClassesAreTracked(t *testing.T) {
	t.Parallel()
	const prefix = "secretproviderclass.reloader.stakater.com/"
	references := append(used(), reference.Reference{Ref: class("vault"), Optional: true})
	tests := map[string]struct {
		reason             string
		workload, template map[string]string
		want               []reference.Ref
	}{
		"auto":        {"It covers all that is referenced.", map[string]string{"reloader.stakater.com/auto": "true", prefix + "auto": "false"}, nil, []reference.Ref{configMap("absent"), configMap("app"), configMap("marked"), secret("app"), secret("db"), class("vault")}},
		"typed auto":  {"It covers what is mounted of its kind.", map[string]string{prefix + "auto": "true"}, nil, []reference.Ref{class("vault")}},
		"named":       {"Names and expressions, mounted or not.", map[string]string{prefix + "reload": "other,va.*"}, nil, []reference.Ref{class("other"), class("vault")}},
		"on template": {"They are read where the workload has none.", nil, map[string]string{prefix + "auto": "true"}, []reference.Ref{class("vault")}},
		"excluded": {
			"It never triggers, also when it is listed.",
			map[string]string{prefix + "auto": "true", prefix + "reload": "vault,other", "secretproviderclasses.exclude.reloader.stakater.com/reload": "vault"},
			nil,
			[]reference.Ref{class("other")},
		},
		"search": {"A class can be marked.", map[string]string{searchKey: "true"}, nil, []reference.Ref{configMap("marked"), class("vault")}},
	}
	objects := cluster{class("vault"): {Marked: true}, configMap("marked"): {Marked: true}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialect := annotation.Stakater{
				Keys: annotation.NewStakaterKeys(), SecretProviderClasses: true, ReloadOnCreate: true, ReloadOnDelete: true,
			}
			src := annotation.Source{Workload: tc.workload, Template: tc.template, References: references}
			intent, problems := annotation.Parse(src, dialect)
			assert.Empty(t, problems)
			intent, _ = annotation.Resolve(intent, objects, recorded{}, references)
			assert.Equal(t, tc.want, intent.Refs(), tc.reason)
			trigger, ok := intent.Tracked[class("vault")]
			assert.Equal(t, annotation.Trigger{AtOnce: ok}, trigger, "its content comes and goes with the pods")
			dialect.SecretProviderClasses = false
			intent, _ = annotation.Parse(src, dialect)
			intent, _ = annotation.Resolve(intent, objects, recorded{}, references)
			assert.NotContains(t, intent.Refs(), class("vault"), "without the flag it is not handled")
		})
	}
}

func TestLabelsOfSecretProviderClassSayNothing(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("team=shop")
	assert.NoError(t, err)
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), Selector: selector}
	assert.True(t, dialect.Traits(reference.Secret, nil, nil).Ignored, "a Secret without the label is not selected")
	assert.False(t, dialect.Traits(reference.SecretProviderClass, nil, nil).Ignored, "the selector is not for classes")
	ignored := map[string]string{dialect.Keys.Ignore: "true"}
	assert.True(t, dialect.Traits(reference.SecretProviderClass, nil, ignored).Ignored, "its annotations do")
}
