package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// respond is what a webhook of a test answers; a patch is the text of JSON patch operations.
type respond func(ctx context.Context, r *admissionv1.AdmissionRequest) (patch string, err error)

// webhook makes a webhook for all writes of workloads, which can be changed.
func webhook(name string, f respond, change ...func(*apiserver.Webhook)) apiserver.Webhook {
	fail, none, never := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.NeverReinvocationPolicy
	w := apiserver.Webhook{
		Config: admissionregistrationv1.MutatingWebhook{
			Name: name, FailurePolicy: &fail, SideEffects: &none, ReinvocationPolicy: &never,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		},
		Call: func(ctx context.Context, r *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
			patch, err := f(ctx, r.Request)
			if err != nil {
				return nil, err
			}
			response := &admissionv1.AdmissionResponse{UID: r.Request.UID, Allowed: true}
			if patch != "" {
				kind := admissionv1.PatchTypeJSONPatch
				response.Patch, response.PatchType = []byte(patch), &kind
			}
			return &admissionv1.AdmissionReview{TypeMeta: r.TypeMeta, Response: response}, nil
		},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

func ifNeeded(w *apiserver.Webhook) {
	policy := admissionregistrationv1.IfNeededReinvocationPolicy
	w.Config.ReinvocationPolicy = &policy
}

func ignoring(w *apiserver.Webhook) {
	policy := admissionregistrationv1.Ignore
	w.Config.FailurePolicy = &policy
}

func validating(w *apiserver.Webhook) { w.Validating = true }

func with(webhooks ...apiserver.Webhook) func(*apiserver.Options) {
	return func(o *apiserver.Options) { o.Webhooks = webhooks }
}

// annotate is the patch that sets an annotation of cartBody.
func annotate(key, value string) string {
	return fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/%s","value":"%s"}]`, key, value)
}

func TestWebhookSeesTheRequest(t *testing.T) {
	t.Parallel()
	var got []*admissionv1.AdmissionRequest
	s := server(t, with(webhook("w", func(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
		got = append(got, r)
		return "", nil
	})))
	created := post(t, s, deployments, cartBody).object()
	send(t, s, call{method: http.MethodPatch, path: cart, body: `{"spec":{"replicas":2}}`, contentType: "application/merge-patch+json", agent: "kubectl/v1"}).object()
	require.Len(t, got, 2)
	assert.Equal(t, admissionv1.Create, got[0].Operation)
	assert.Equal(t, "cart", got[0].Name)
	assert.Equal(t, "shop", got[0].Namespace)
	assert.Empty(t, got[0].OldObject.Raw)
	var first, second, old metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal(got[0].Object.Raw, &first))
	assert.Empty(t, first.UID, "it has no identity before it is stored")
	assert.Contains(t, string(got[0].Object.Raw), `"progressDeadlineSeconds":600`, "defaults come before admission")

	assert.Equal(t, admissionv1.Update, got[1].Operation)
	assert.Equal(t, "kubectl", got[1].UserInfo.Username)
	require.NoError(t, json.Unmarshal(got[1].Object.Raw, &second))
	require.NoError(t, json.Unmarshal(got[1].OldObject.Raw, &old))
	assert.Equal(t, created.GetUID(), second.UID)
	assert.EqualValues(t, 1, second.Generation, "it is raised after admission")
	assert.Equal(t, created.GetResourceVersion(), old.ResourceVersion)
	assert.Equal(t, "UpdateOptions", kindOf(t, got[1].Options.Raw))
	assert.NotEqual(t, got[0].UID, got[1].UID)
}

func kindOf(t *testing.T, raw []byte) string {
	t.Helper()
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal(raw, &meta))
	return meta.Kind
}

func TestWebhookChangesTheObject(t *testing.T) {
	t.Parallel()
	var commits []world.Commit
	s := server(t, func(o *apiserver.Options) {
		o.OnCommit = func(c world.Commit) { commits = append(commits, c) }
		o.Webhooks = []apiserver.Webhook{webhook("w", func(_ context.Context, r *admissionv1.AdmissionRequest) (string, error) {
			return `[{"op":"add","path":"/metadata/annotations/hook","value":"` + string(r.Operation) + `"},{"op":"remove","path":"/spec/revisionHistoryLimit"}]`, nil
		})}
	})
	u := post(t, s, deployments, cartBody).object()
	assert.Equal(t, "CREATE", u.GetAnnotations()["hook"])
	assert.EqualValues(t, 10, field(u, "spec", "revisionHistoryLimit"), "defaults come back after a webhook")
	u = merge(t, s, cart, `{"metadata":{"labels":{"a":"b"}}}`).object()
	assert.Equal(t, "UPDATE", u.GetAnnotations()["hook"])
	assert.EqualValues(t, 2, u.GetGeneration(), "the webhook's annotation counts")
	c := commits[len(commits)-1]
	assert.Equal(t, "CREATE", world.Meta(c.Sent).GetAnnotations()["hook"], "what the client wanted")
	assert.Equal(t, "b", world.Meta(c.Sent).GetLabels()["a"])
	assert.Equal(t, "UPDATE", world.Meta(c.New).GetAnnotations()["hook"])
	before := s.Version()
	merge(t, s, cart, `{"metadata":{"annotations":{"hook":"x"}}}`).object()
	assert.Equal(t, before, s.Version(), "the webhook undid the only change")
}

func TestReinvocation(t *testing.T) {
	t.Parallel()
	sees := func(calls *[]string, name, patch string) respond {
		return func(context.Context, *admissionv1.AdmissionRequest) (string, error) {
			*calls = append(*calls, name)
			return patch, nil
		}
	}
	for name, tc := range map[string]struct {
		why   string
		hooks func(calls *[]string) []apiserver.Webhook
		want  []string
	}{
		"a later one changes": {"The first wants to see it.", func(c *[]string) []apiserver.Webhook {
			return []apiserver.Webhook{webhook("a", sees(c, "a", ""), ifNeeded), webhook("b", sees(c, "b", annotate("b", "1")))}
		}, []string{"a", "b", "a"}},
		"none changes": {"There is nothing to see.", func(c *[]string) []apiserver.Webhook {
			return []apiserver.Webhook{webhook("a", sees(c, "a", ""), ifNeeded), webhook("b", sees(c, "b", annotate("note", "1")))}
		}, []string{"a", "b"}},
		"only its own change": {"It knows that one.", func(c *[]string) []apiserver.Webhook {
			return []apiserver.Webhook{webhook("a", sees(c, "a", annotate("a", "1")), ifNeeded), webhook("b", sees(c, "b", ""))}
		}, []string{"a", "b"}},
		"both want": {"Only the one before the change is called again, and its change calls the other.", func(c *[]string) []apiserver.Webhook {
			n := 0
			a := func(context.Context, *admissionv1.AdmissionRequest) (string, error) {
				*c = append(*c, "a")
				n++
				return annotate("a", fmt.Sprint(n)), nil
			}
			return []apiserver.Webhook{webhook("a", a, ifNeeded), webhook("b", sees(c, "b", annotate("b", "1")), ifNeeded)}
		}, []string{"a", "b", "a", "b"}},
		"not asked for": {"Never is the default.", func(c *[]string) []apiserver.Webhook {
			return []apiserver.Webhook{webhook("a", sees(c, "a", "")), webhook("b", sees(c, "b", annotate("b", "1")))}
		}, []string{"a", "b"}},
		"validating": {"They come last, once.", func(c *[]string) []apiserver.Webhook {
			return []apiserver.Webhook{webhook("v", sees(c, "v", ""), validating), webhook("a", sees(c, "a", ""), ifNeeded), webhook("b", sees(c, "b", annotate("b", "1")))}
		}, []string{"a", "b", "a", "v"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			post(t, server(t, with(tc.hooks(&calls)...)), deployments, cartBody).object()
			assert.Equal(t, tc.want, calls, tc.why)
		})
	}
}

func TestRejections(t *testing.T) {
	t.Parallel()
	reject := func(result *metav1.Status, validate bool) apiserver.Webhook {
		w := webhook("w.example.com", nil)
		w.Validating = validate
		w.Call = func(_ context.Context, r *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
			return &admissionv1.AdmissionReview{TypeMeta: r.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: r.Request.UID, Result: result, Warnings: []string{"mind"}}}, nil
		}
		return w
	}
	for name, tc := range map[string]struct {
		result  *metav1.Status
		code    int
		reason  metav1.StatusReason
		message string
	}{
		"with all":  {&metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: "moved on"}, 409, metav1.StatusReasonConflict, `admission webhook "w.example.com" denied the request: moved on`},
		"no code":   {&metav1.Status{Message: "no"}, 400, "", `admission webhook "w.example.com" denied the request: no`},
		"nothing":   {nil, 400, "", `admission webhook "w.example.com" denied the request without explanation`},
		"low code":  {&metav1.Status{Code: 200, Reason: "Because"}, 400, "Because", `admission webhook "w.example.com" denied the request: Because`},
		"retryable": {&metav1.Status{Code: 503, Message: "later"}, 503, "", `admission webhook "w.example.com" denied the request: later`},
	} {
		for _, validate := range []bool{false, true} {
			t.Run(fmt.Sprint(name, validate), func(t *testing.T) {
				t.Parallel()
				var replies []world.Reply
				s := server(t, with(reject(tc.result, validate)), func(o *apiserver.Options) { o.OnReply = func(r world.Reply) { replies = append(replies, r) } })
				a := post(t, s, deployments, cartBody)
				require.Equal(t, tc.code, a.Code, a.Body)
				assert.Equal(t, tc.message, a.failure().Message)
				assert.Equal(t, tc.reason, a.failure().Reason)
				assert.Equal(t, `299 - "mind"`, a.Header.Get("Warning"))
				assert.Equal(t, "w.example.com", replies[0].Webhook)
				_, stored := s.Get(worldKey("deployments", "cart"))
				assert.False(t, stored, "a rejected object is not stored")
			})
		}
	}
}

func TestFailingWebhooks(t *testing.T) {
	t.Parallel()
	seconds := func(n int32) func(*apiserver.Webhook) {
		return func(w *apiserver.Webhook) { w.Config.TimeoutSeconds = &n }
	}
	hang := func(ctx context.Context, _ *admissionv1.AdmissionRequest) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	fail := func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return "", errors.New("refused") }
	nonsense := func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return "{", nil }
	impossible := func(context.Context, *admissionv1.AdmissionRequest) (string, error) {
		return `[{"op":"remove","path":"/none"}]`, nil
	}
	for name, tc := range map[string]struct {
		hook    apiserver.Webhook
		code    int
		message string
		takes   time.Duration
	}{
		"fails, Fail":         {webhook("w", fail), 500, `failed calling webhook "w": failed to call webhook: refused`, 0},
		"fails, Ignore":       {webhook("w", fail, ignoring), 201, "", 0},
		"hangs, Fail":         {webhook("w", hang, seconds(3)), 500, `failed calling webhook "w": failed to call webhook: context deadline exceeded`, 3 * time.Second},
		"hangs, Ignore":       {webhook("w", hang, ignoring, seconds(3)), 201, "", 3 * time.Second},
		"hangs for long":      {webhook("w", hang, ignoring), 201, "", 10 * time.Second},
		"nonsense":            {webhook("w", nonsense), 500, "received undecodable patch in webhook response", 0},
		"impossible patch":    {webhook("w", impossible), 500, "unable to remove nonexistent key", 0},
		"validating patches":  {webhook("w", impossible, validating), 500, "validating webhook may not return response.patch", 0},
		"validating, ignored": {webhook("w", fail, validating, ignoring), 201, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := server(t, with(tc.hook))
				start := time.Now()
				a := post(t, s, deployments, cartBody)
				assert.Equal(t, tc.takes, time.Since(start))
				require.Equal(t, tc.code, a.Code, a.Body)
				if tc.code != 201 {
					assert.Contains(t, a.failure().Message, tc.message)
					assert.Equal(t, metav1.StatusReasonInternalError, a.failure().Reason)
				}
				s.Stop()
			})
		})
	}
}

func TestRequestsEndInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ *admissionv1.AdmissionRequest) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		s := server(t, with(webhook("a", hang, ignoring), webhook("b", hang, ignoring), webhook("c", hang, ignoring), webhook("d", hang, ignoring)))
		start := time.Now()
		a := post(t, s, deployments, cartBody)
		assert.Equal(t, 34*time.Second, time.Since(start))
		assert.Equal(t, 504, a.Code, a.Body)
		assert.Equal(t, metav1.StatusReasonTimeout, a.failure().Reason)
		s.Stop()
	})
}

func TestReplyNamesTheWebhooksThatWereCalled(t *testing.T) {
	t.Parallel()
	var replies []world.Reply
	s := server(t, func(o *apiserver.Options) { o.OnReply = func(r world.Reply) { replies = append(replies, r) } }, with(
		webhook("first", func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return "", nil }, ifNeeded),
		webhook("second", func(context.Context, *admissionv1.AdmissionRequest) (string, error) { return annotate("a", "b"), nil }),
	))
	post(t, s, deployments, cartBody).object()
	get(t, s, cart)
	send(t, s, call{method: http.MethodGet, path: cart, accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"})
	require.Len(t, replies, 3)
	assert.Equal(t, []string{"first", "second", "first"}, replies[0].Called)
	assert.Empty(t, replies[1].Called)
	assert.Equal(t, []bool{false, true}, []bool{replies[1].Call.Partial, replies[2].Call.Partial})
}

func TestWebhookThatMakesAnObjectInvalidIsNamed(t *testing.T) {
	t.Parallel()
	spoil := func(_ context.Context, _ *admissionv1.AdmissionRequest) (string, error) {
		return `[{"op":"replace","path":"/spec/template/spec/containers","value":[]}]`, nil
	}
	for name, tc := range map[string]struct {
		body string
		want string
	}{
		"of a valid object":    {cartBody, "w.example.com"},
		"of an invalid object": {strings.Replace(cartBody, `"name":"cart"`, `"name":"Not A Name"`, 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replies []world.Reply
			s := server(t, with(webhook("w.example.com", spoil)), func(o *apiserver.Options) { o.OnReply = func(r world.Reply) { replies = append(replies, r) } })
			a := post(t, s, deployments, tc.body)
			require.Equal(t, 422, a.Code, a.Body)
			assert.Equal(t, tc.want, replies[0].Webhook)
		})
	}
}
