package simulate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// strippingWebhook is the fault by which another mutating webhook, such as a policy engine, removes managed annotations from each write.
const strippingWebhook = "stripping-webhook"

const (
	// stripsWhat is the parameter that says what is removed: an annotation, the reload request, or all managed annotations.
	stripsWhat = "strips"
	// stripsFrom is the parameter that says from whose writes.
	stripsFrom = "from"
	// stripsWhen is the parameter that says whether that webhook is called before ours or after.
	stripsWhen = "when"
)

// The values of these parameters. A removal before our webhook leaves what ours writes.
const (
	stripLastReload, stripRecord, stripHash, stripRequest, stripAll = "last-reload", "config-record", "config-hash", "the request", "all"

	fromAll, fromProgram  = "of all", "of the program"
	whenBefore, whenAfter = "before ours", "after ours"
)

// stripper is what another mutating webhook removes while the fault lasts.
type stripper struct {
	// namespace or resource limits the workloads.
	namespace, resource string
	what, from, when    string
	// prefix is that of the managed annotations.
	prefix string
}

// stripperFaults are about a webhook of others that removes managed annotations. They have no weight: a theme and a situation have them.
func stripperFaults() []faultKind {
	return []faultKind{{
		name: strippingWebhook, kind: "strips", scoped: true,
		words: "another mutating webhook removes managed annotations from writes of workloads in %[1]s for %[2]s (%[3]s)",
		draw: func(r *rand.Rand) history.Step {
			return history.Step{On: pick(r, strippedScopes()...), With: map[string]string{
				"for":      pick(r, "2s", "12s", "45s", "2m", "10m"),
				stripsWhat: pick(r, stripLastReload, stripRecord, stripHash, stripRequest, stripAll),
				stripsFrom: pick(r, fromAll, fromProgram), stripsWhen: pick(r, whenAfter, whenAfter, whenBefore),
			}}
		},
		begin: func(s *simulation, step history.Step) func() {
			one := &stripper{
				what: step.With[stripsWhat], from: step.With[stripsFrom], when: step.With[stripsWhen], prefix: prefixOf(s.flags), resource: step.On,
			}
			if name, is := strings.CutPrefix(step.On, "namespaces/"); is {
				one.namespace, one.resource = name, ""
			}
			s.faults.strippers = append(s.faults.strippers, one)
			s.registerWebhooks()
			return func() {
				s.faults.dismiss(one)
				s.registerWebhooks()
			}
		},
	}}
}

// strippedScopes are what such a webhook may be about.
func strippedScopes() []string {
	return []string{"namespaces/shop", "namespaces/bank", "deployments", "statefulsets", "daemonsets", "cronjobs"}
}

// strippedKind is the oracle's word for the fault: what is not stored of what is written. What is removed before our webhook, that one may
// write again.
func strippedKind(step history.Step) string {
	if step.With[stripsWhen] == whenBefore {
		return "strips early " + step.With[stripsWhat]
	}
	return "strips " + step.With[stripsWhat]
}

// registerWebhooks has the API server call the webhooks that there are now.
func (s *simulation) registerWebhooks() {
	if err := s.setWebhooks(); err != nil {
		s.broken = err
	}
}

// strippersOf returns the webhooks of others that remove annotations before or after ours.
func (s *simulation) strippersOf(when string) []apiserver.Webhook {
	var all []apiserver.Webhook
	for _, one := range s.faults.strippers {
		if one.when == when {
			all = append(all, patchingReview("stripper.example.com", one.patch))
		}
	}
	return all
}

// patch returns the operations that remove what is to be removed; nil if nothing is there.
func (p *stripper) patch(request *admissionv1.AdmissionRequest, o world.Object) ([]byte, error) {
	concerned := (p.namespace == "" || p.namespace == request.Namespace) && (p.resource == "" || p.resource == request.Resource.Resource) &&
		(p.from == fromAll || isProgram(request.UserInfo.Username))
	if !concerned {
		return nil, nil
	}
	ofWorkload, ofTemplate := p.names()
	ops := p.removals(o, []string{"metadata", "annotations"}, ofWorkload)
	ops = append(ops, p.removals(o, append(world.TemplatePath(request.Resource.Resource), "metadata", "annotations"), ofTemplate)...)
	if len(ops) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encode the removals: %w", err)
	}
	return text, nil
}

// names returns the annotations that are removed from workloads, and those that are removed from pod templates.
func (p *stripper) names() (ofWorkload, ofTemplate []string) {
	switch p.what {
	case stripLastReload, stripRecord:
		return []string{p.what}, nil
	case stripRequest:
		return []string{stripHash}, nil
	case stripHash:
		return nil, []string{stripHash, "config-restart"}
	}
	return []string{stripLastReload, stripRecord, stripHash}, []string{stripHash, "config-restart"}
}

// removals returns the operations that remove annotations at a path.
func (p *stripper) removals(o world.Object, path, names []string) (ops []map[string]string) {
	annotations := world.Section(o, path...)
	for _, name := range names {
		if _, is := annotations[p.prefix+name]; is {
			pointer := "/" + strings.Join(path, "/") + "/" + strings.ReplaceAll(p.prefix+name, "/", "~1")
			ops = append(ops, map[string]string{"op": "remove", "path": pointer})
		}
	}
	return ops
}

// dismiss ends the work of a stripper.
func (f *faults) dismiss(one *stripper) {
	f.strippers = slices.DeleteFunc(f.strippers, func(other *stripper) bool { return other == one })
}
