package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Object reads one raw workload. It never changes it and survives any shape: a part that is missing or of another type
// reads as empty.
type Object struct {
	Kind Kind
	// Raw is the object as decoded from JSON.
	Raw map[string]any
}

func (o Object) metadata(field string) string {
	s, _, _ := unstructured.NestedString(o.Raw, "metadata", field)
	return s
}

// Name of the workload.
func (o Object) Name() string { return o.metadata("name") }

// Namespace of the workload.
func (o Object) Namespace() string { return o.metadata("namespace") }

// UID of the workload.
func (o Object) UID() string { return o.metadata("uid") }

// ResourceVersion of the workload.
func (o Object) ResourceVersion() string { return o.metadata("resourceVersion") }

// Created is when the workload was created, in whole seconds; zero if that is not known.
func (o Object) Created() time.Time {
	at, _ := time.Parse(time.RFC3339, o.metadata("creationTimestamp")) // zero where it is none
	return at
}

// Generation of the workload, 0 if it has none. Decoders differ in the type they give to numbers.
func (o Object) Generation() int64 {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Raw, "metadata", "generation")
	return number(v)
}

// Labels of the workload.
func (o Object) Labels() map[string]string {
	return stringMap(o.Raw, "metadata", "labels")
}

// Annotations of the workload. The map is a copy; values that are no strings are left out.
func (o Object) Annotations() map[string]string {
	return stringMap(o.Raw, "metadata", "annotations")
}

// TemplateAnnotations returns the annotations of the pod template. The map is a copy.
func (o Object) TemplateAnnotations() map[string]string {
	return stringMap(o.Raw, append(slices.Clone(o.Kind.Template), "metadata", "annotations")...)
}

// HasTemplate reports whether there is a pod template at the kind's path.
func (o Object) HasTemplate() bool {
	_, ok := o.template()
	return ok
}

// Template returns the raw pod template, nil if there is none. Do not change it.
func (o Object) Template() map[string]any {
	template, _ := o.template()
	return template
}

func (o Object) template() (map[string]any, bool) {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Raw, o.Kind.Template...)
	m, ok := v.(map[string]any)
	return m, ok
}

// Controlled reports whether another object made this one and controls it, as a CronJob does its Jobs.
func (o Object) Controlled() bool {
	owners, _, _ := unstructured.NestedFieldNoCopy(o.Raw, "metadata", "ownerReferences")
	list, _ := owners.([]any)
	return slices.ContainsFunc(list, func(owner any) bool {
		m, _ := owner.(map[string]any)
		controller, _ := m["controller"].(bool)
		return controller
	})
}

// Owners returns the objects that the workload has owner references to, in the order written.
func (o Object) Owners() []reference.Owner {
	references, _, _ := unstructured.NestedFieldNoCopy(o.Raw, "metadata", "ownerReferences")
	list, _ := references.([]any)
	var owners []reference.Owner
	for _, item := range list {
		fields, _ := item.(map[string]any)
		apiVersion, _ := fields["apiVersion"].(string)
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		group, _, grouped := strings.Cut(apiVersion, "/")
		if !grouped {
			group = ""
		}
		if kind != "" && name != "" {
			owners = append(owners, reference.Owner{Group: group, Kind: kind, Name: name})
		}
	}
	return owners
}

// Check reports whether annotations can be written where this package looks for them: on the workload and on its pod
// template. The error says which part of the object is in the way; nothing may then be written, since it would replace
// what a user has put there.
func (o Object) Check() error {
	template := slices.Clone(o.Kind.Template)
	for _, path := range [][]string{
		{"metadata", "annotations"},
		append(template, "metadata", "annotations"),
	} {
		if err := o.checkPath(path); err != nil {
			return err
		}
	}
	if !o.HasTemplate() {
		if spec, _ := o.Raw["spec"].(map[string]any); spec["workloadRef"] != nil {
			return errors.New("the pod template is that of the workload at spec.workloadRef, where the annotations belong")
		}
		return fmt.Errorf("there is no pod template at %s", strings.Join(o.Kind.Template, "."))
	}
	return nil
}

// checkPath makes sure that all that is there of a path are objects.
func (o Object) checkPath(path []string) error {
	at := o.Raw
	for i, field := range path {
		value := at[field]
		if value == nil {
			return nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not an object: annotations cannot be written there", strings.Join(path[:i+1], "."))
		}
		at = next
	}
	return nil
}

// References returns what the pod spec names. The error says that the template holds no pod spec: something that is no
// object, or no list where the API has one. What is named elsewhere is returned all the same.
func (o Object) References() ([]reference.Reference, error) {
	template, _ := o.template()
	path := strings.Join(o.Kind.Template, ".") + ".spec"
	raw, ok := template["spec"].(map[string]any)
	if !ok {
		if template["spec"] != nil {
			return nil, fmt.Errorf("%s is not an object", path)
		}
		return nil, nil
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers", "volumes", "imagePullSecrets"} {
		if _, isList := raw[field].([]any); !isList && raw[field] != nil {
			return reference.FromPodSpec(raw), fmt.Errorf("%s.%s is not a list", path, field)
		}
	}
	return reference.FromPodSpec(raw), nil
}

// Deleting reports whether the workload is being deleted: it waits for finalizers, or for its pods, and its controller starts none.
func (o Object) Deleting() bool {
	metadata, _ := o.Raw["metadata"].(map[string]any)
	at, _ := metadata["deletionTimestamp"].(string)
	return at != ""
}

// Paused reports whether the controller of the workload leaves a new template alone for now (spec.paused).
func (o Object) Paused() bool {
	spec, _ := o.Raw["spec"].(map[string]any)
	paused, _ := spec["paused"].(bool)
	return paused
}

// Finished reports whether a Job is complete or has failed, or will be complete once its last pods have ended (KEP-3998), which may take
// for ever if their node is gone. Other kinds never are.
func (o Object) Finished() bool { return o.Ended() || o.hasCondition("SuccessCriteriaMet") }

// Ended reports whether a Job is complete or has failed, and no pod of it is left. Other kinds never are.
func (o Object) Ended() bool { return o.hasCondition("Complete") || o.hasCondition("Failed") }

// hasCondition reports whether the status of a Job has a condition that is true.
func (o Object) hasCondition(kind string) bool {
	if !o.Kind.CreateOnly {
		return false
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(o.Raw, "status", "conditions")
	list, _ := conditions.([]any)
	return slices.ContainsFunc(list, func(entry any) bool {
		condition, _ := entry.(map[string]any)
		return condition["type"] == kind && condition["status"] == "True"
	})
}

// Suspended reports whether a Job has no pods until it is resumed (spec.suspend). Other kinds never are.
func (o Object) Suspended() bool {
	spec, _ := o.Raw["spec"].(map[string]any)
	suspended, _ := spec["suspend"].(bool)
	return o.Kind.CreateOnly && suspended
}

// ForbidsConcurrent reports whether a CronJob runs no Job beside another one (spec.concurrencyPolicy: Forbid). Other kinds never do.
func (o Object) ForbidsConcurrent() bool {
	spec, _ := o.Raw["spec"].(map[string]any)
	return o.Kind.Schedules() && spec["concurrencyPolicy"] == "Forbid"
}

// Pending says why a new template does not replace all running pods now, e.g. "paused", or "" if it does.
func (o Object) Pending() string {
	if reason := o.keptBack(); reason != "" {
		return reason
	}
	if partition := o.Partition(); partition != "" {
		return "partition " + partition
	}
	return ""
}

// Replaced returns how many of some pods a new template replaces now: a partition keeps the others.
func (o Object) Replaced(pods int) int {
	if o.keptBack() != "" {
		return 0
	}
	kept, percent := o.partition()
	if percent {
		kept = (kept*int64(pods) + 99) / 100
	}
	return int(max(int64(pods)-kept, 0))
}

// The update strategies of OpenKruise that patch a running pod if only the metadata or the images of its template differ: no container
// restarts for a new annotation. For any other difference, the first replaces the pod, and the second refuses the template.
const (
	InPlaceIfPossible = "InPlaceIfPossible"
	InPlaceOnly       = "InPlaceOnly"
)

// InPlace returns which of these a workload has, or "" if a new template replaces its pods.
func (o Object) InPlace() string {
	strategy, rolling := o.updateStrategy()
	fields := []any{strategy["type"]} // of a CloneSet; a StatefulSet and a DaemonSet have it below
	if strategy["type"] != "OnDelete" {
		fields = append(fields, rolling["podUpdatePolicy"], rolling["rollingUpdateType"])
	}
	for _, how := range []string{InPlaceIfPossible, InPlaceOnly} {
		if slices.ContainsFunc(fields, func(field any) bool { text, _ := field.(string); return text == how }) {
			return how
		}
	}
	return ""
}

// keptBack says why a new template replaces no running pod now, or "" if it replaces some.
func (o Object) keptBack() string {
	strategy, rolling := o.updateStrategy()
	if o.Paused() || strategy["paused"] == true || rolling["paused"] == true {
		return "paused"
	}
	if o.Kind.Kind == "CronJob" || slices.ContainsFunc(o.Kind.Template, isJobTemplate) {
		return "next scheduled run"
	}
	if strategy["type"] == "OnDelete" {
		return "OnDelete"
	}
	spec, _ := o.Raw["spec"].(map[string]any)
	if o.Kind.isDeploymentConfig() && !changesByTemplate(spec["triggers"]) {
		return "no ConfigChange trigger"
	}
	return ""
}

// isJobTemplate reports whether what is at a field is a template of Jobs, or of BroadcastJobs of OpenKruise.
func isJobTemplate(field string) bool {
	return field == "jobTemplate" || field == "broadcastJobTemplate"
}

// updateStrategy returns the strategy that most kinds have, and the part of it that is about rolling updates.
func (o Object) updateStrategy() (strategy, rolling map[string]any) {
	spec, _ := o.Raw["spec"].(map[string]any)
	strategy, _ = spec["updateStrategy"].(map[string]any)
	rolling, _ = strategy["rollingUpdate"].(map[string]any)
	return strategy, rolling
}

// changesByTemplate reports whether the triggers of a DeploymentConfig roll out a new template. OpenShift adds that trigger where there is
// no list.
func changesByTemplate(triggers any) bool {
	list, ok := triggers.([]any)
	return !ok || slices.ContainsFunc(list, func(entry any) bool {
		trigger, _ := entry.(map[string]any)
		return trigger["type"] == "ConfigChange"
	})
}

// Partition returns how many pods keep an earlier template while a new one replaces the others, as a number or as a percentage such as
// 50%; empty if a new one replaces all or none. A StatefulSet keeps the first ones.
func (o Object) Partition() string {
	kept, percent := o.partition()
	switch {
	case kept == 0 || o.keptBack() != "":
		return ""
	case percent:
		return fmt.Sprintf("%d%%", kept)
	default:
		return strconv.FormatInt(kept, 10)
	}
}

// partition returns how many pods a partition keeps, or how many percent of them. A CloneSet has it beside its type.
func (o Object) partition() (kept int64, percent bool) {
	strategy, rolling := o.updateStrategy()
	value, ok := rolling["partition"]
	if !ok {
		value = strategy["partition"]
	}
	text, _ := value.(string)
	if text, percent = strings.CutSuffix(text, "%"); percent {
		n, _ := strconv.ParseInt(text, 10, 32) // zero where it is none
		return min(max(n, 0), 100), true
	}
	return max(number(value), 0), false
}

func stringMap(raw map[string]any, path ...string) map[string]string {
	v, _, _ := unstructured.NestedFieldNoCopy(raw, path...)
	m, _ := v.(map[string]any)
	strs := make(map[string]string, len(m))
	for key, value := range m {
		if s, ok := value.(string); ok {
			strs[key] = s
		}
	}
	return strs
}

func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	default:
		return 0
	}
}

// AnnotationSizes returns the bytes that the keys and values of the annotations take, as the API server counts them: of
// the workload and of its template.
func (o Object) AnnotationSizes() (onWorkload, onTemplate int) {
	for key, value := range o.Annotations() {
		onWorkload += len(key) + len(value)
	}
	for key, value := range o.TemplateAnnotations() {
		onTemplate += len(key) + len(value)
	}
	return onWorkload, onTemplate
}
