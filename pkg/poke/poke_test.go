package poke_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	digest   = "1c9e04abee43621162f0a43200f1ed7d2228523fb1258d819993c9f1d1f303d5"
	reloaded = `{"time":"2026-01-02T03:04:05.000Z","hash":"` + digest + `","generation":4,"cause":"config-change"}`
	recorded = "v1:-:1c9e04ab:configmap/app~c91d319dcfcb5604@7"
	stamped  = "v1:" + digest + ":77aa00ff:configmap/app=9a0c4f1122334455"
	other    = "v1:-:1c9e04ab:configmap/app~9a0c4f1122334455"
	another  = `{"time":"2026-01-02T03:04:05.000Z","hash":"4417e0","generation":4,"cause":"config-change"}`
	byProof  = `{"time":"2026-01-02T03:04:05.000Z","hash":"4417e0","digest":"` + digest + `","generation":4,"cause":"config-change"}`
)

func TestJudge(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	tests := map[string]struct {
		bound, answered     int64
		dummy, last, record string
		want                poke.Outcome
	}{
		"stamped with this digest":                    {4, 5, "", reloaded, "", poke.Reloaded},
		"proven by it, though the hash is another":    {4, 5, "", byProof, "", poke.Reloaded},
		"purged, and the Record has this content":     {4, 4, "", "", recorded, poke.Current},
		"purged, and the Record is of this template":  {4, 4, "", "", stamped, poke.Current},
		"purged, and the Record says nothing":         {4, 4, "", another, "v1:" + digest + "::", poke.Purged},
		"purged, never recorded":                      {4, 4, "", "", "", poke.Purged},
		"purged, and the Record has another content":  {4, 4, "", "", other, poke.Purged},
		"the workload was another generation":         {4, 6, "", another, "", poke.Stale},
		"stored as it is: no webhook":                 {4, 4, digest + "@4", "", "", poke.Unseen},
		"unbound and stamped":                         {0, 5, "", reloaded, "", poke.Reloaded},
		"unbound and purged":                          {0, 5, "", another, "", poke.Purged},
		"unbound, reloaded by this digest before":     {0, 5, "", byProof, "", poke.Reloaded},
		"bound, reloaded by this digest before":       {5, 5, "", byProof, "", poke.Purged},
		"bound, and the Record is of that reload":     {5, 5, "", byProof, "v1:4417e0:77aa00ff:configmap/app=9a0c4f1122334455", poke.Current},
		"purged, and an object was adopted since":     {4, 4, "", "", stamped + ",secret/db~9a0c4f1122334455", poke.Purged},
		"unbound, and an object was adopted since":    {0, 5, "", byProof, "v1:4417e0:77aa00ff:configmap/app~9a0c4f1122334455", poke.Purged},
		"unbound and stored: no webhook":              {0, 5, digest, "", "", poke.Unseen},
		"another client's dummy says nothing of ours": {4, 4, "4417e0@4", "", "", poke.Purged},
		"stamped, and last-reload is removed":         {4, 5, "", "", stamped, poke.Stale},
		"the same, asked again":                       {5, 5, "", "", stamped, poke.Current},
		"a last-reload that cannot be read":           {4, 6, "", "{", "", poke.Stale},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := &metav1.ObjectMeta{Generation: tc.answered, Annotations: map[string]string{}}
			if tc.dummy != "" {
				answer.Annotations[keys.ConfigHash] = tc.dummy
			}
			if tc.last != "" {
				answer.Annotations[keys.LastReload] = tc.last
			}
			if tc.record != "" {
				answer.Annotations[keys.ConfigRecord] = tc.record
			}
			got := poke.Judge(answer, poke.Request{Digest: digest, Generation: tc.bound})
			assert.Equal(t, tc.want, got.Outcome)
			assert.Equal(t, tc.answered, got.Generation)
			assert.Equal(t, tc.want == poke.Reloaded, got.LastReload.Hash != "", "the explanation belongs to a reload only")
		})
	}
}

// The generation of a workload that was deleted and created again begins with 1, so that it can be that of the request.
func TestAnswerOfAnotherUIDIsStale(t *testing.T) {
	t.Parallel()
	answer := &metav1.ObjectMeta{UID: "new", Generation: 5, Annotations: map[string]string{annotation.DefaultKeys().LastReload: reloaded}}
	assert.Equal(t, poke.Stale, poke.Judge(answer, poke.Request{Digest: digest, Generation: 4, UID: "old"}).Outcome)
	assert.Equal(t, poke.Reloaded, poke.Judge(answer, poke.Request{Digest: digest, Generation: 4, UID: "new"}).Outcome)
}

// Another webhook comes in between, and the configuration changes: the second pass stamps what it reads.
func TestAnotherLastReloadThanTheTestedOneIsTheOneAskedFor(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	field := "/metadata/annotations/" + strings.ReplaceAll(keys.LastReload, "/", "~1")
	test := func(path string, value any) []jsonpatch.Operation {
		return []jsonpatch.Operation{jsonpatch.NewOperation("test", "/metadata/uid", "u"), jsonpatch.NewOperation("test", path, value)}
	}
	for name, tc := range map[string]struct {
		further    []jsonpatch.Operation
		generation int64
		want       poke.Outcome
	}{
		"beside none":                            {test(field, json.RawMessage("null")), 4, poke.Reloaded},
		"beside an earlier one":                  {test(field, "earlier"), 4, poke.Reloaded},
		"beside an earlier one, any generation":  {test(field, "earlier"), 0, poke.Reloaded},
		"beside itself":                          {test(field, reloaded), 4, poke.Stale},
		"beside itself, any generation":          {test(field, reloaded), 0, poke.Purged},
		"beside any":                             {nil, 4, poke.Stale},
		"beside any, any generation":             {nil, 0, poke.Purged},
		"another annotation is tested":           {test(field+"s", "earlier"), 4, poke.Stale},
		"it is not tested":                       {[]jsonpatch.Operation{jsonpatch.NewOperation("add", field, "earlier")}, 4, poke.Stale},
		"it is the reload of another generation": {test(field, "earlier"), 3, poke.Stale},
	} {
		answer := &metav1.ObjectMeta{Generation: 5, Annotations: map[string]string{keys.LastReload: reloaded}}
		got := poke.Judge(answer, poke.Request{Digest: "other", Generation: tc.generation, Further: tc.further})
		assert.Equal(t, tc.want, got.Outcome, name)
	}
}

func TestRequestForTheLiveDigestIsProvenByItsGeneration(t *testing.T) {
	t.Parallel()
	answer := &metav1.ObjectMeta{Generation: 5, Annotations: map[string]string{annotation.DefaultKeys().LastReload: reloaded}}
	assert.Equal(t, poke.Reloaded, poke.Judge(answer, poke.Request{Digest: "live", Generation: 4}).Outcome)
	assert.Equal(t, poke.Stale, poke.Judge(answer, poke.Request{Digest: "live", Generation: 3}).Outcome)
}

// It is bound to generation 0: of a workload with another generation the webhook purges it.
func TestRequestForTheLiveDigestWithoutAGenerationIsStale(t *testing.T) {
	t.Parallel()
	answer := &metav1.ObjectMeta{Generation: 5, Annotations: map[string]string{annotation.DefaultKeys().LastReload: reloaded}}
	assert.Equal(t, poke.Stale, poke.Judge(answer, poke.Request{Digest: "live"}).Outcome, "the reload is an earlier one")
	answer.Generation = 0
	assert.Equal(t, poke.Reloaded, poke.Judge(answer, poke.Request{Digest: "live"}).Outcome, "the kind has no generations")
}

func TestRequestForTheLiveDigestIsAlwaysBound(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "live@4", poke.Dummy("live", 4))
	assert.Equal(t, "live@0", poke.Dummy("live", 0), "a kind without generations; the webhook rejects an unbound one")
	assert.Equal(t, digest, poke.Dummy(digest, 0))
}

func TestDoClassifiesFailures(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	mismatch := apierrors.NewConflict(resource, "app", errors.New("digest"))
	mismatch.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "DigestMismatch"}}
	unverifiable := apierrors.NewServiceUnavailable("try again")
	unverifiable.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "DigestUnverifiable"}}, RetryAfterSeconds: 1}
	tests := map[string]struct {
		err  error
		want poke.Outcome
	}{
		"the webhook saw another digest":  {mismatch, poke.Conflict},
		"another webhook denies it":       {apierrors.NewConflict(resource, "lock", errors.New("locked")), poke.Failed},
		"the webhook could not verify it": {unverifiable, poke.Unverifiable},
		"another webhook is unavailable":  {apierrors.NewServiceUnavailable("try again"), poke.Failed},
		"a proxy is unavailable":          {apierrors.NewGenericServerResponse(503, "patch", resource, "app", "<h1>503</h1>", 0, true), poke.Failed},
		"not allowed":                     {apierrors.NewForbidden(resource, "app", errors.New("no")), poke.Failed},
		"no connection":                   {errors.New("connection refused"), poke.Failed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &patcher{err: tc.err}
			result, err := poke.Do(t.Context(), c, request())
			require.ErrorIs(t, err, tc.err, "the cause is kept")
			assert.Equal(t, tc.want, result.Outcome)
			assert.Equal(t, apierrors.IsConflict(tc.err), apierrors.IsConflict(err), "RetryOnConflict must see conflicts, and only those")
			assert.ErrorContains(t, err, "Deployment shop/cart")
		})
	}
}

func TestDoWritesTheDummyAndNothingElse(t *testing.T) {
	t.Parallel()
	other, err := poke.NewKeys("example.org")
	require.NoError(t, err)
	tests := map[string]struct {
		keys poke.Keys
		want string
	}{
		"default prefix": {poke.Keys{}, "pod-reloader.cs.sap.com/config-hash"},
		"another":        {other, "example.org/config-hash"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := &patcher{}, request()
			r.Keys = tc.keys
			_, err := poke.Do(t.Context(), c, r)
			require.NoError(t, err)
			assert.JSONEq(t, `{"metadata":{"annotations":{"`+tc.want+`":"`+digest+`@7"}}}`, c.body)
		})
	}
}

func TestDoWritesTheFurtherChangeInTheSamePatch(t *testing.T) {
	t.Parallel()
	c, r := &patcher{}, request()
	r.Further = []jsonpatch.Operation{jsonpatch.NewOperation("test", "/metadata/generation", 7), jsonpatch.NewOperation("add", "/spec/paused", true)}
	_, err := poke.Do(t.Context(), c, r)
	require.NoError(t, err)
	assert.Equal(t, types.JSONPatchType, c.form)
	assert.JSONEq(t, `[
		{"op":"test","path":"/metadata/generation","value":7}, {"op":"add","path":"/spec/paused","value":true},
		{"op":"add","path":"/metadata/annotations/pod-reloader.cs.sap.com~1config-hash","value":"`+digest+`@7"}]`, c.body)
	r.Further = nil
	_, err = poke.Do(t.Context(), c, r)
	require.NoError(t, err)
	assert.Equal(t, types.MergePatchType, c.form, "the workload may have no annotations")
}

func request() poke.Request {
	return poke.Request{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace:        "shop", Name: "cart", Digest: digest, Generation: 7,
	}
}

// patcher injects an error and keeps the body; what an API server makes of it is tested on a real one.
type patcher struct {
	err  error
	body string
	form types.PatchType
}

func (p *patcher) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	p.body, p.form = string(body), patch.Type()
	if err != nil {
		return err
	}
	return p.err
}

// A flag or an annotation hides recorded objects from a workload for a time: the digest is not over them.
func TestJudgeComparesWhatTheDigestIsOver(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	answer := &metav1.ObjectMeta{Generation: 4, Annotations: map[string]string{
		keys.ConfigRecord: recorded + ",secret/db~4417e0a1b2c3d4e5@8",
	}}
	for name, tc := range map[string]struct {
		refs []reference.Ref
		want poke.Outcome
	}{
		"only it":                  {[]reference.Ref{app}, poke.Current},
		"not known":                {nil, poke.Purged},
		"all that is recorded":     {[]reference.Ref{app, db}, poke.Purged},
		"another one":              {[]reference.Ref{db}, poke.Purged},
		"one that is not recorded": {[]reference.Ref{{Kind: reference.Secret, Name: "tls"}}, poke.Purged},
		"none":                     {[]reference.Ref{}, poke.Purged},
	} {
		got := poke.Judge(answer, poke.Request{Digest: digest, Refs: tc.refs, Generation: 4, Keys: keys})
		assert.Equal(t, tc.want, got.Outcome, name)
	}
}
