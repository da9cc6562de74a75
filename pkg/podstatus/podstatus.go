// Package podstatus says what the content of a SecretProviderClass is.
//
// It is one of the pure packages, beside digest, whose Content and State it fills in. The content of a ConfigMap is in
// one object; that of a SecretProviderClass is in as many as there are pods. The Secrets Store CSI driver keeps a
// SecretProviderClassPodStatus for each pod and class, in the pod's namespace, with the id and the version of every
// object that it has mounted. It makes the status when it mounts the volume, replaces the versions when it rotates
// them, and the garbage collector takes the status away with its pod. So a rollout replaces all statuses, and during a
// rotation, which reaches one node after the other, the pods have different versions. Versions are texts without an
// order.
//
// # The rule
//
// What Of returns is one status, whose objects are the content. A status that was only ever mounted does not ask for a
// restart: its pod was started with these versions. One that was rotated does: its pod was started with others.
// metadata.generation shows the difference: it is 1 until the driver writes other versions, as its documentation says.
//
//   - Of rotated statuses, the one that was written last counts: rotation brings newer versions to older ones. All versions
//     of it count together, since one write has all objects of the class.
//   - Without a rotated one, the oldest counts: that is what all pods have, or the last of them. A new pod that mounts a
//     newer version before the others are rotated must not hide their rotation.
//
// # Why no restart causes another
//
// The state has the resourceVersion of its status. It grows with each write (Kubernetes defines that since 1.35, and etcd has
// always done it), and the Record keeps it beside the Entry. policy compares the two, and this is what remembers the order
// of versions, across restarts and on every replica alike:
//
//   - A status that was written before the recorded one has nothing new. So when the first pod that was rotated goes, and the
//     others still have the versions from before, nothing changes.
//   - A recorded version that is later than the workload which has the Record comes from another cluster, by a restore, and counts for
//     nothing (policy.Known.AsOf). Where an API server stores workloads and statuses in separate databases, whose versions have no common
//     order, that can forget the order of statuses.
//   - A later status that was mounted and not rotated is at most adopted. So the pods that a rollout starts, whose versions may
//     even differ from pod to pod, cause none.
//   - A later status that was rotated is a Change if its content differs from the recorded one: once per version, since the
//     other pods are rotated to the same.
//
// # Limits
//
// A state belongs to the class, not to the workload: rotated pods of one workload restart another one that mounts the same
// class, also if its own pods already started with the new version. A pod that mounts an old version after a restart for the
// new one, because the store answers late, is not restarted when it is rotated. A write to a rotated status by anything but
// the driver makes it the latest. A status that outlives its pod until a StatefulSet has created that again is updated by the driver,
// and looks rotated; so its first versions count at once, if they differ from the recorded ones. A release between the change in the store and its first rotation may be followed by a
// restart.
package podstatus

import (
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Status is a SecretProviderClassPodStatus, reduced to what counts.
type Status struct {
	Name, UID, ResourceVersion string
	// Class is the name of the SecretProviderClass.
	Class string
	// Rotated says that the driver has written other versions since it mounted the volume.
	Rotated bool
	// Objects are the versions by id.
	Objects map[string]string
}

// Of returns the status whose objects are the content of a class, out of all statuses of that class in a namespace, in any
// order; false if there is none with objects.
func Of(statuses []Status) (Status, bool) {
	var found Status
	for _, s := range statuses {
		if len(s.Objects) > 0 && (found.UID == "" || s.counts(found)) {
			found = s
		}
	}
	return found, found.UID != ""
}

// counts reports whether a status counts rather than another one.
func (s Status) counts(other Status) bool {
	later, earlier := reference.Later(s.ResourceVersion, other.ResourceVersion), reference.Later(other.ResourceVersion, s.ResourceVersion)
	switch {
	case s.Rotated != other.Rotated:
		return s.Rotated
	case later == earlier: // neither has an order
		return s.Name < other.Name
	default:
		return later == s.Rotated
	}
}

// State returns the state of a class in a namespace, out of all of its statuses there. It needs no read, so it always has
// its Entries.
func State(namespace, class string, statuses []Status, ring digest.Ring) (digest.State, digest.Content) {
	found, ok := Of(statuses)
	if !ok {
		return digest.State{Absent: true}, digest.Content{}
	}
	content := digest.OfObjects(reference.Ref{Kind: reference.SecretProviderClass, Name: class}, namespace, found.Objects)
	state := digest.StateOf(content, found.UID, found.ResourceVersion, ring)
	state.Mounted = !found.Rotated
	return state, content
}
