package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/webhook"
)

const pausedAt = "deployment.reloader.stakater.com/paused-at"

// pausedVersion is one version of a Deployment; nil annotations are missing.
func pausedVersion(t *testing.T, paused bool, annotations map[string]string, change ...func(object map[string]any)) string {
	t.Helper()
	metadata := map[string]any{"name": "cart", "namespace": "shop", "labels": map[string]string{"app": "cart"}}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	object := map[string]any{"metadata": metadata, "spec": map[string]any{"paused": paused, "template": map[string]any{}}}
	for _, f := range change {
		f(object)
	}
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// An operator's PUT has its own annotations only. Without the begin of a pause of ours, nothing would end the pause.
func TestPauseKeepsItsBegin(t *testing.T) {
	t.Parallel()
	since := map[string]string{pausedAt: "2026-01-02T03:04:05Z"}
	operators := map[string]string{"example.org/operator": "x"}
	const (
		list, recorded = "pod-reloader.cs.sap.com/configmaps", "pod-reloader.cs.sap.com/config-record"
		app            = "v1:-:30390c67:configmap/app~36361962fec0f328@11"
	)
	add := map[string]any{"op": "add", "path": "/metadata/annotations/deployment.reloader.stakater.com~1paused-at", "value": "2026-01-02T03:04:05Z"}
	made := map[string]any{"op": "add", "path": "/metadata/annotations", "value": map[string]any{}}
	begins := func(o *webhook.Options) { o.PausedAt = pausedAt }
	excluded := func(object map[string]any) {
		object["metadata"].(map[string]any)["labels"] = map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}
	}
	for name, tc := range map[string]struct {
		old, current string
		options      func(*webhook.Options)
		kind, create bool
		patch        []map[string]any
		rule         string
	}{
		"dropped, with annotations of the operator": {
			old: pausedVersion(t, true, since), current: pausedVersion(t, true, operators), patch: []map[string]any{add}, rule: "excluded",
		},
		"dropped with all annotations": {
			old: pausedVersion(t, true, since), current: pausedVersion(t, true, nil), patch: []map[string]any{made, add}, rule: "excluded",
		},
		"dropped, and nothing else": {
			old:     pausedVersion(t, true, map[string]string{list: "app", recorded: app, pausedAt: since[pausedAt]}),
			current: pausedVersion(t, true, map[string]string{list: "app", recorded: app}), patch: []map[string]any{add}, rule: "nothing",
		},
		"dropped, and excluded": {
			old: pausedVersion(t, true, since), current: pausedVersion(t, true, operators, excluded), patch: []map[string]any{add}, rule: "excluded",
		},
		"kept":                            {old: pausedVersion(t, true, since), current: pausedVersion(t, true, since)},
		"the pause is ended":              {old: pausedVersion(t, true, since), current: pausedVersion(t, false, operators)},
		"a user's pause":                  {old: pausedVersion(t, true, operators), current: pausedVersion(t, true, nil)},
		"an earlier pause":                {old: pausedVersion(t, false, since), current: pausedVersion(t, true, operators)},
		"another kind":                    {old: pausedVersion(t, true, since), current: pausedVersion(t, true, operators), kind: true},
		"a creation":                      {old: "null", current: pausedVersion(t, true, operators), create: true},
		"Reloader's are not on":           {old: pausedVersion(t, true, since), current: pausedVersion(t, true, operators), options: func(*webhook.Options) {}},
		"the annotation has another name": {old: pausedVersion(t, true, since), current: pausedVersion(t, true, nil), options: func(o *webhook.Options) { o.PausedAt = "example.org/since" }},
		"the workload is out of the scope": {
			old: pausedVersion(t, true, since), current: pausedVersion(t, true, operators), options: func(o *webhook.Options) {
				o.PausedAt, o.Scope = pausedAt, scope.Scope{ObjectSelector: labels.Set{"app": "other"}.AsSelector()}
			},
		},
		"the budget is used up": {
			old: pausedVersion(t, true, since), current: pausedVersion(t, true, map[string]string{"x": strings.Repeat("x", 256<<10-560)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			options := begins
			if tc.options != nil {
				options = tc.options
			}
			body := review(`"operation":"UPDATE","oldObject":` + tc.old + `,"object":` + tc.current)
			if tc.create {
				body = strings.Replace(body, "UPDATE", "CREATE", 1)
			}
			if tc.kind {
				body = strings.Replace(body, `"kind":"Deployment"`, `"kind":"StatefulSet"`, 1)
			}
			response := responseOf(t, post(newHandler(t, w, options, logr.Discard()).handler, []byte(body)))
			assert.True(t, response.Allowed, "a pause blocks no write")
			assert.Empty(t, response.Warnings)
			assert.Equal(t, tc.patch, patchOf(t, response))
			assert.Equal(t, tc.rule, response.AuditAnnotations["rule"])
			assert.Zero(t, w.reads.Load())
		})
	}
}

// The rule decides as without a pause: it puts back what is managed, and the begin of the pause comes with that.
func TestPauseIsKeptBesideManagedAnnotations(t *testing.T) {
	t.Parallel()
	forgotten := string(fixture(t, "put-without-our-annotations/request.yaml"))
	plain := responseOf(t, post(newHandler(t, newWorld(t), nil, logr.Discard()).handler, []byte(forgotten)))
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(forgotten), &body))
	request := body["request"].(map[string]any)
	for _, version := range []string{"object", "oldObject"} {
		request[version].(map[string]any)["spec"].(map[string]any)["paused"] = true
	}
	request["oldObject"].(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)[pausedAt] = "2026-01-02T03:04:05Z"
	text, err := json.Marshal(body)
	require.NoError(t, err)
	response := responseOf(t, post(newHandler(t, newWorld(t), func(o *webhook.Options) { o.PausedAt = pausedAt }, logr.Discard()).handler, text))
	assert.Equal(t, plain.AuditAnnotations, response.AuditAnnotations)
	patch := patchOf(t, response)
	require.NotEmpty(t, patch)
	assert.Equal(t, patchOf(t, plain), patch[:len(patch)-1])
	assert.Equal(t, "/metadata/annotations/deployment.reloader.stakater.com~1paused-at", patch[len(patch)-1]["path"])
}
