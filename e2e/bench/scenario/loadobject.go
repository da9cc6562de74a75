package scenario

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// The annotations of Reloader.
const (
	autoKey        = "reloader.stakater.com/auto"
	pausePeriodKey = "deployment.reloader.stakater.com/pause-period"
)

const configHashKey = prefix + "config-hash"

func (l load) namespace(n int) string { return numbered("load-"+l.name, n%l.namespaces) }

// isSecret reports whether an object is a Secret.
func (l load) isSecret(j int) bool { return l.secrets && j/l.namespaces%2 == 1 }

// object returns a config object as it is created.
func (l load) object(j int) client.Object {
	meta := metav1.ObjectMeta{Namespace: l.namespace(j), Name: numbered("config", j)}
	data := map[string]string{"key": "0", "more": strings.Repeat("x", max(l.bytes, 200))}
	if l.isSecret(j) {
		return &corev1.Secret{ObjectMeta: meta, StringData: data}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: data}
}

// patch is the n-th edit of an object: other content of the same size, or another label.
func (l load) patch(n int) client.Patch {
	body := fmt.Sprintf(`{"data":{"key":%q}}`, fmt.Sprintf("%0*d", max(l.bytes, 8), n+1))
	if l.metadata {
		body = fmt.Sprintf(`{"metadata":{"labels":{"edit":"%d"}}}`, n)
	}
	return client.RawPatch(types.MergePatchType, []byte(body))
}

// reads are the objects that a workload reads.
func (l load) reads(i int) []int {
	var objects []int
	for n := range l.uses {
		objects = append(objects, (i*l.uses+n)%l.objects)
	}
	return objects
}

// kind is that of a workload.
func (l load) kind(i int) string {
	if len(l.kinds) == 0 {
		return "Deployment"
	}
	return l.kinds[i%len(l.kinds)]
}

// seen is how the observer names a workload.
func (l load) seen(i int) observe.Workload {
	return observe.Workload{Kind: l.kind(i), Namespace: l.namespace(i), Name: numbered("web", i)}
}

// workload returns a workload without pods.
func (l load) workload(i int) client.Object {
	d := deployment{name: numbered("web", i), indifferent: true}
	for _, j := range l.reads(i) {
		if l.isSecret(j) {
			d.secrets = append(d.secrets, numbered("config", j))
		} else {
			d.configMaps = append(d.configMaps, numbered("config", j))
		}
	}
	object := d.object(l.namespace(i))
	object.Labels, object.Annotations = nil, map[string]string{autoKey: "true"}
	for key, value := range l.annotations {
		object.Annotations[key] = value
	}
	switch l.kind(i) {
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: object.ObjectMeta, Spec: appsv1.StatefulSetSpec{
			Replicas: object.Spec.Replicas, Selector: object.Spec.Selector, Template: object.Spec.Template,
		}}
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: object.ObjectMeta, Spec: appsv1.DaemonSetSpec{
			Selector: object.Spec.Selector, Template: object.Spec.Template,
		}}
	default:
		return object
	}
}

// resumed returns an error while a workload is paused.
func (l load) resumed(watcher *observe.Watcher) error {
	for i := range l.workloads {
		object := watcher.Object(l.seen(i))
		if object == nil {
			continue
		}
		if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused {
			return fmt.Errorf("%s is paused", l.seen(i))
		}
	}
	return nil
}
