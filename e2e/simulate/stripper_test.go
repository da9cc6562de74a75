package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestStripperRemovesWhatItIsAbout(t *testing.T) {
	t.Parallel()
	annotations := map[string]any{act.Prefix + "configmaps": "app", act.Prefix + "config-record": "v1", act.Prefix + "last-reload": "{}", act.Prefix + "config-hash": "abc"}
	cronJob := world.Object{
		"metadata": world.Object{"annotations": annotations},
		"spec": world.Object{"jobTemplate": world.Object{"spec": world.Object{"template": world.Object{"metadata": world.Object{
			"annotations": world.Object{act.Prefix + "config-hash": "abc", "note": "a"},
		}}}}},
	}
	const workload, template = "/metadata/annotations/", "/spec/jobTemplate/spec/template/metadata/annotations/"
	for name, tc := range map[string]struct {
		stripper stripper
		client   string
		want     []string
	}{
		"last-reload":             {stripper: stripper{what: stripLastReload, from: fromAll}, want: []string{workload + "last-reload"}},
		"the record":              {stripper: stripper{what: stripRecord, from: fromAll}, want: []string{workload + "config-record"}},
		"the stamp":               {stripper: stripper{what: stripHash, from: fromAll}, want: []string{template + "config-hash"}},
		"the request":             {stripper: stripper{what: stripRequest, from: fromAll}, want: []string{workload + "config-hash"}},
		"all but lists":           {stripper: stripper{what: stripAll, from: fromAll}, want: []string{workload + "last-reload", workload + "config-record", workload + "config-hash", template + "config-hash"}},
		"a write of the program":  {stripper: stripper{what: stripRecord, from: fromProgram}, client: "replica-0.1", want: []string{workload + "config-record"}},
		"a write of a user":       {stripper: stripper{what: stripRecord, from: fromProgram}},
		"another namespace":       {stripper: stripper{what: stripRecord, from: fromAll, namespace: "bank"}},
		"its namespace":           {stripper: stripper{what: stripRecord, from: fromAll, namespace: "shop"}, want: []string{workload + "config-record"}},
		"another kind":            {stripper: stripper{what: stripRecord, from: fromAll, resource: "deployments"}},
		"annotations of no other": {stripper: stripper{what: stripRecord, from: fromAll, resource: "cronjobs"}, want: []string{workload + "config-record"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := &admissionv1.AdmissionRequest{Namespace: "shop", Resource: metav1.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}}
			request.UserInfo.Username = tc.client
			tc.stripper.prefix = act.Prefix
			patch, err := tc.stripper.patch(request, cronJob)
			require.NoError(t, err)
			var want []byte
			for n, path := range tc.want {
				start := map[bool]string{true: "[", false: ","}[n == 0]
				escaped := path[:len(path)-len(lastOf(path))] + "pod-reloader.cs.sap.com~1" + lastOf(path)
				want = append(want, start+`{"op":"remove","path":"`+escaped+`"}`...)
			}
			if want != nil {
				want = append(want, ']')
			}
			assert.Equal(t, string(want), string(patch))
		})
	}
}

// lastOf returns the name behind the last slash of a path.
func lastOf(path string) string {
	for n := len(path) - 1; ; n-- {
		if path[n] == '/' {
			return path[n+1:]
		}
	}
}

// While last-reload is removed, each reload has its Events; afterwards, all is as before.
func TestStrippedReloadsAreJudged(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	run := runner(t)
	h := history.History{Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 1}}
	p := tracked{"deployments/shop/cart", "configmaps/shop/app"}
	h.Steps = []history.Step{
		{Do: strippingWebhook, On: "deployments", Wait: history.Duration(betweenSituations), With: map[string]string{
			"for": "5m", stripsWhat: stripLastReload, stripsFrom: fromProgram, stripsWhen: whenAfter,
		}},
		p.edit("one", betweenSituations), p.edit("two", 10*time.Minute),
	}
	o := run(h)
	assert.Empty(t, o.Violations)
	assert.Positive(t, o.Judged["reloads without last-reload judged"])
	assert.Equal(t, 1, o.Tried[strippingWebhook])
}

func TestWebhookThatStripsIsInFewHistories(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 300
	with := 0
	for seed := range uint64(seeds) {
		for _, step := range Draw(seed, DrawOptions{Steps: 60, Faults: true}).Steps {
			if step.Do == strippingWebhook {
				with++
				break
			}
		}
		for _, step := range Draw(seed, DrawOptions{Steps: 60, Theme: "stripped"}).Steps {
			assert.NotEqual(t, strippingWebhook, step.Do, "seed %d: histories without faults have none", seed)
		}
	}
	assert.Greater(t, with, seeds/30)
	assert.Less(t, with, seeds/6)
}
