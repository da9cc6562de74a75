package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestWhichWebhooksApply(t *testing.T) {
	t.Parallel()
	rule := func(change func(*admissionregistrationv1.RuleWithOperations)) func(*apiserver.Webhook) {
		return func(w *apiserver.Webhook) { change(&w.Config.Rules[0]) }
	}
	selector := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	condition := func(expression string) func(*apiserver.Webhook) {
		return func(w *apiserver.Webhook) {
			w.Config.MatchConditions = append(w.Config.MatchConditions, admissionregistrationv1.MatchCondition{Name: "c", Expression: expression})
		}
	}
	cluster, namespaced := admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope
	for name, tc := range map[string]struct {
		change  func(*apiserver.Webhook)
		applies bool
	}{
		"as it is":    {func(*apiserver.Webhook) {}, true},
		"other group": {rule(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = []string{"batch"} }), false},
		"all": {rule(func(r *admissionregistrationv1.RuleWithOperations) {
			r.APIGroups, r.Resources = []string{"*"}, []string{"*"}
		}), true},
		"subresources": {rule(func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = []string{"deployments/status"} }), false},
		"CREATE only":  {rule(func(r *admissionregistrationv1.RuleWithOperations) { r.Operations = r.Operations[:1] }), false},
		"cluster":      {rule(func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &cluster }), false},
		"namespaced":   {rule(func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &namespaced }), true},
		"namespace": {func(w *apiserver.Webhook) {
			w.Config.NamespaceSelector = selector("kubernetes.io/metadata.name", "shop")
		}, true},
		"other namespace":    {func(w *apiserver.Webhook) { w.Config.NamespaceSelector = selector("kubernetes.io/metadata.name", "b") }, false},
		"old object":         {func(w *apiserver.Webhook) { w.Config.ObjectSelector = selector("team", "x") }, true},
		"new object":         {func(w *apiserver.Webhook) { w.Config.ObjectSelector = selector("team", "y") }, true},
		"neither":            {func(w *apiserver.Webhook) { w.Config.ObjectSelector = selector("team", "z") }, false},
		"condition":          {condition(`object.metadata.labels["team"] == "y" && oldObject.metadata.labels["team"] == "x"`), true},
		"condition false":    {condition(`request.operation == "CREATE"`), false},
		"false beats errors": {func(w *apiserver.Webhook) { condition(`object.none == 1`)(w); condition(`false`)(w) }, false},
		"error, Ignore":      {func(w *apiserver.Webhook) { condition(`object.none == 1`)(w); ignoring(w) }, false},
		"ours":               {condition(ours), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			s := server(t)
			post(t, s, deployments, strings.Replace(cartBody, `"note"`, `"pod-reloader.cs.sap.com/configmaps"`, 1)).object()
			require.NoError(t, s.SetWebhooks([]apiserver.Webhook{webhook("w", func(context.Context, *admissionv1.AdmissionRequest) (string, error) {
				calls++
				return "", nil
			}, tc.change)}))
			merge(t, s, cart, `{"metadata":{"labels":{"team":"y"}}}`).object()
			assert.Equal(t, tc.applies, calls == 1)
		})
	}
	_, err := apiserver.New(apiserver.Options{Webhooks: []apiserver.Webhook{webhook("w", nil, condition(`object.(`))}})
	require.ErrorContains(t, err, "compile match condition c")
	s := server(t, with(webhook("w", nil, condition(`object.none == 1`))))
	assert.Equal(t, 403, post(t, s, deployments, cartBody).Code, "an error with the policy Fail")
}

// ours is the condition of pod-reloader's own webhook.
const ours = `[object, oldObject].exists(o, o != null && [
has(o.metadata) && has(o.metadata.annotations) ? o.metadata.annotations : {},
has(o.spec) && has(o.spec.template) && has(o.spec.template.metadata) && has(o.spec.template.metadata.annotations) ? o.spec.template.metadata.annotations : {},
has(o.spec) && has(o.spec.jobTemplate) && has(o.spec.jobTemplate.spec) && has(o.spec.jobTemplate.spec.template)
&& has(o.spec.jobTemplate.spec.template.metadata) && has(o.spec.jobTemplate.spec.template.metadata.annotations)
? o.spec.jobTemplate.spec.template.metadata.annotations : {}
].exists(annotations, annotations != null && annotations.exists(key, key.startsWith("pod-reloader.cs.sap.com/") || key.contains("reloader.stakater.com/"))))`

func TestRacesDuringAdmission(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why   string
		write func(t *testing.T, s http.Handler, version string) answer
		code  int
		calls int
	}{
		"PATCH": {"It is applied to the new object, and admitted again.", func(t *testing.T, s http.Handler, _ string) answer {
			t.Helper()
			return merge(t, s, cart, `{"metadata":{"labels":{"a":"b"}}}`)
		}, 200, 2},
		"PUT": {"So is an unconditional PUT.", func(t *testing.T, s http.Handler, _ string) answer {
			t.Helper()
			return put(t, s, cart, cartBody)
		}, 200, 2},
		"PUT with version": {"The version is gone.", func(t *testing.T, s http.Handler, version string) answer {
			t.Helper()
			return put(t, s, cart, strings.Replace(cartBody, `"metadata":{`, `"metadata":{"resourceVersion":"`+version+`",`, 1))
		}, 409, 2},
		"PATCH with version": {"The version is gone.", func(t *testing.T, s http.Handler, version string) answer {
			t.Helper()
			return merge(t, s, cart, `{"metadata":{"resourceVersion":"`+version+`","labels":{"a":"b"}}}`)
		}, 409, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			var s *apiserver.Server
			hook := webhook("w", func(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
				if calls++; calls == 1 {
					o, _ := s.Get(worldKey("deployments", "cart"))
					changed := world.Meta(o).DeepCopy()
					changed.SetLabels(map[string]string{"raced": "yes"})
					_, err := s.Store(worldKey("deployments", "cart"), changed.Object)
					return "", err
				}
				var old metav1.PartialObjectMetadata
				_ = json.Unmarshal(r.OldObject.Raw, &old)
				if old.Labels["raced"] == "" {
					return "", errors.New("the second call sees the old object")
				}
				return "", nil
			})
			s = server(t)
			u := post(t, s, deployments, cartBody).object()
			require.NoError(t, s.SetWebhooks([]apiserver.Webhook{hook}))
			a := tc.write(t, s, u.GetResourceVersion())
			assert.Equal(t, tc.code, a.Code, a.Body)
			assert.Equal(t, tc.calls, calls, tc.why)
		})
	}
}

func TestWarningsAreSentOnce(t *testing.T) {
	t.Parallel()
	warn := func(w *apiserver.Webhook) {
		next := w.Call
		w.Call = func(ctx context.Context, r *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
			out, err := next(ctx, r)
			if out != nil {
				out.Response.Warnings = []string{`say "hello"`}
			}
			return out, err
		}
	}
	nothing := func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return "", nil }
	s := server(t, with(webhook("a", nothing, warn), webhook("b", nothing, warn)))
	a := post(t, s, deployments, cartBody)
	require.Equal(t, 201, a.Code)
	assert.Equal(t, []string{`299 - "say \"hello\""`}, a.Header.Values("Warning"))
}

func TestDryRunNeedsAWebhookWithoutSideEffects(t *testing.T) {
	t.Parallel()
	some := func(w *apiserver.Webhook) {
		effects := admissionregistrationv1.SideEffectClassSome
		w.Config.SideEffects = &effects
	}
	nothing := func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return annotate("a", "b"), nil }
	a := post(t, server(t, with(webhook("w", nothing, some))), deployments+"?dryRun=All", cartBody)
	require.Equal(t, 400, a.Code)
	assert.Contains(t, a.failure().Message, "does not support dry run")
	u := post(t, server(t, with(webhook("w", nothing))), deployments+"?dryRun=All", cartBody).object()
	assert.Equal(t, "b", u.GetAnnotations()["a"])
}
