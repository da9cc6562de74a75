package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// webhooks returns the webhooks of the cluster: ours as the manifests configure it, and others'.
func (s *simulation) webhooks() ([]apiserver.Webhook, error) {
	ours, err := s.ownWebhooks()
	if err != nil {
		return nil, err
	}
	all := s.strippersOf(whenBefore)
	where := s.history.Setup.OtherWebhooks
	if where == "before" || where == "around" {
		all = append(all, Injector("a-injector.example.com", "first"))
	}
	all = append(all, ours...)
	if where == "after" || where == "around" {
		all = append(all, Injector("z-injector.example.com", "second"))
	}
	if where == "checksum" {
		all = append(all, checksummer())
	}
	return append(append(all, s.strippersOf(whenAfter)...), s.validator()), nil
}

// ownWebhook returns our webhook as an installation has it.
func (s *simulation) ownWebhook(second bool, flags []string) (apiserver.Webhook, error) {
	config, err := configuration()
	if err != nil {
		return apiserver.Webhook{}, err
	}
	if s.history.Setup.FailurePolicy != "" {
		policy := admissionregistrationv1.FailurePolicyType(s.history.Setup.FailurePolicy)
		config.FailurePolicy = &policy
	}
	call := func(ctx context.Context, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
		return s.callWebhook(ctx, second, review)
	}
	err = render(&config, flags)
	return apiserver.Webhook{Config: config, Call: call}, err
}

// configuration returns our webhook's configuration in the manifests, so that its conditions are what is simulated.
func configuration() (admissionregistrationv1.MutatingWebhook, error) {
	read, err := readConfiguration()
	return *read.DeepCopy(), err
}

var readConfiguration = sync.OnceValues(func() (admissionregistrationv1.MutatingWebhook, error) {
	_, content, err := readFile("manifests/base/webhook.yaml")
	if err != nil {
		return admissionregistrationv1.MutatingWebhook{}, fmt.Errorf("read the webhook's configuration: %w", err)
	}
	var all admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		return admissionregistrationv1.MutatingWebhook{}, fmt.Errorf("decode the webhook's configuration: %w", err)
	}
	return all.Webhooks[0], nil
})

const injected = "injector.example.com/"

// checksummer is a mutating webhook of others that keeps a checksum of the pod template's annotations on the workload, as
// policy engines do. It changes what ours has stamped, so that ours is called again for the same request.
func checksummer() apiserver.Webhook { return patching("z-checksum.example.com", checksum) }

// checksum returns the patch that writes the checksum; nil if it is there.
func checksum(o world.Object) ([]byte, error) {
	template := world.Section(o, "spec", "template", "metadata")
	if template == nil {
		template = world.Section(o, "spec", "jobTemplate", "spec", "template", "metadata")
	}
	text, err := json.Marshal(template["annotations"])
	if err != nil {
		return nil, fmt.Errorf("encode the annotations: %w", err)
	}
	sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(text))
	annotations := world.Section(o, "metadata", "annotations")
	switch {
	case annotations[injected+"checksum"] == sum:
		return nil, nil
	case len(annotations) == 0:
		return fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations","value":{%q:%q}}]`, injected+"checksum", sum), nil
	}
	return fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations/%schecksum","value":%q}]`, strings.ReplaceAll(injected, "/", "~1"), sum), nil
}

// Injector is a mutating webhook of others that adds an annotation to pod templates, as injectors of sidecars do.
func Injector(name, key string) apiserver.Webhook {
	return patching(name, func(o world.Object) ([]byte, error) { return inject(o, injected+key), nil })
}

// patching is a mutating webhook of others. It is called again for a request that a later one has changed.
func patching(name string, patch func(world.Object) ([]byte, error)) apiserver.Webhook {
	return patchingReview(name, func(_ *admissionv1.AdmissionRequest, o world.Object) ([]byte, error) { return patch(o) })
}

// patchingReview is patching by what is reviewed, too.
func patchingReview(name string, patch func(*admissionv1.AdmissionRequest, world.Object) ([]byte, error)) apiserver.Webhook {
	return apiserver.Webhook{
		Config: foreignConfig(name, admissionregistrationv1.IfNeededReinvocationPolicy),
		Call: func(_ context.Context, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
			o := world.Object{}
			if err := json.Unmarshal(review.Request.Object.Raw, &o); err != nil {
				return nil, fmt.Errorf("decode the object of a review: %w", err)
			}
			var err error
			answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
			if answer.Patch, err = patch(review.Request, o); err != nil {
				return nil, err
			}
			if answer.Patch != nil {
				kind := admissionv1.PatchTypeJSONPatch
				answer.PatchType = &kind
			}
			return &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer}, nil
		},
	}
}

// inject returns the patch that adds an annotation to a pod template; nil if there is one.
func inject(o world.Object, key string) []byte {
	path := "/spec/template/metadata"
	template := world.Section(o, "spec", "template", "metadata")
	if template == nil {
		path = "/spec/jobTemplate/spec/template/metadata"
		template = world.Section(o, "spec", "jobTemplate", "spec", "template", "metadata")
	}
	if template == nil {
		return nil
	}
	annotations, _ := template["annotations"].(map[string]any)
	if annotations[key] != nil {
		return nil
	}
	if len(annotations) == 0 {
		return fmt.Appendf(nil, `[{"op":"add","path":"%s/annotations","value":{%q:"true"}}]`, path, key)
	}
	return fmt.Appendf(nil, `[{"op":"add","path":"%s/annotations/%s","value":"true"}]`, path, strings.ReplaceAll(key, "/", "~1"))
}

// templateGeneration is an annotation that the API server itself keeps on DaemonSets.
const templateGeneration = "deprecated.daemonset.template.generation"

// withoutForeign returns an object without what the injectors and the API server add; it shares the rest.
func withoutForeign(o world.Object) world.Object {
	for _, path := range [][]string{
		{"metadata", "annotations"},
		{"spec", "template", "metadata", "annotations"},
		{"spec", "jobTemplate", "spec", "template", "metadata", "annotations"},
	} {
		annotations := world.Section(o, path...)
		kept := maps.Clone(annotations)
		maps.DeleteFunc(kept, func(key string, _ any) bool { return key == templateGeneration || strings.HasPrefix(key, injected) })
		if len(kept) < len(annotations) {
			o = replaced(o, kept, path...)
		}
	}
	return o
}

// replaced returns an object in which the map at a path is another; maps on the way are copied. An empty map is left out.
func replaced(o, value world.Object, path ...string) world.Object {
	o = maps.Clone(o)
	if len(path) > 1 {
		o[path[0]] = replaced(world.Section(o, path[0]), value, path[1:]...)
		return o
	}
	if len(value) == 0 {
		delete(o, path[0])
	} else {
		o[path[0]] = value
	}
	return o
}

// validator is a validating webhook of others that rejects writes of workloads in a namespace, or hangs.
func (s *simulation) validator() apiserver.Webhook {
	config := foreignConfig("validator.example.com", admissionregistrationv1.NeverReinvocationPolicy)
	seconds := int32(10)
	config.TimeoutSeconds = &seconds
	return apiserver.Webhook{
		Config: config, Validating: true,
		Call: func(ctx context.Context, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
			answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
			s.balancing.Lock()
			mode := s.faults.foreign[review.Request.Namespace]
			s.balancing.Unlock()
			switch mode {
			case "hang":
				<-ctx.Done()
				return nil, ctx.Err()
			case "reject":
				answer.Allowed, answer.Result = false, refusal(403)
			}
			return &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer}, nil
		},
	}
}

func foreignConfig(name string, reinvocation admissionregistrationv1.ReinvocationPolicyType) admissionregistrationv1.MutatingWebhook {
	policy, seconds, none := admissionregistrationv1.Fail, int32(5), admissionregistrationv1.SideEffectClassNone
	all := admissionregistrationv1.NamespacedScope
	return admissionregistrationv1.MutatingWebhook{
		Name: name, FailurePolicy: &policy, TimeoutSeconds: &seconds, ReinvocationPolicy: &reinvocation,
		AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"apps", "batch"}, APIVersions: []string{"v1"}, Scope: &all,
				Resources: []string{"deployments", "statefulsets", "daemonsets", "cronjobs"},
			},
		}},
	}
}
