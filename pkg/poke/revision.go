package poke

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Revision returns the revision digest that SAP's pod-reloader publishes, for [Request].Digest: it proves which versions of the
// ConfigMaps and Secrets of a workload's lists a client has seen, without the digest key. The objects are in the order of the lists;
// their metadata is enough. One that does not exist has a name and no UID.
func Revision(namespace string, configMaps, secrets []metav1.Object) string {
	states := map[reference.Ref]digest.State{}
	names := func(kind reference.Kind, objects []metav1.Object) []string {
		all := make([]string, 0, len(objects))
		for _, o := range objects {
			uid := string(o.GetUID())
			states[reference.Ref{Kind: kind, Name: o.GetName()}] = digest.State{Absent: uid == "", UID: uid, ResourceVersion: o.GetResourceVersion()}
			all = append(all, o.GetName())
		}
		return all
	}
	return digest.Revision(namespace, names(reference.ConfigMap, configMaps), names(reference.Secret, secrets), states)
}
