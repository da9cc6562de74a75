package cluster

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// statefulSet is what one pass of the StatefulSet controller works on.
type statefulSet struct {
	owner
	c *Cluster
	// first is the first ordinal.
	replicas, first, partition, minReady int
	rolling, ordered                     bool
	// partitioned is false for a rolling update without parameters: then the status says how many pods keep the current revision.
	partitioned bool
	// current is the revision before a rollout, update that of the template.
	current, update revision
	collisions      int
	// members has every pod with an ordinal; slots those within the range, nil where there is none; condemned the others,
	// highest ordinal first.
	members, slots, condemned []world.Object
	// replaced counts the pods that this pass removed for the update.
	replaced int
}

// syncStatefulSet is one pass (stateful_set_control.go, UpdateStatefulSet).
func (c *Cluster) syncStatefulSet(key world.Key, object world.Object) {
	s := c.readStatefulSet(key, object)
	revisions := c.revisions(s.owner)
	s.findRevisions(revisions)
	s.findPods()
	if s.fill() && s.shrink() && s.rolling {
		s.replace()
	}
	s.putStatus()
	s.truncate(revisions)
}

func (c *Cluster) readStatefulSet(key world.Key, object world.Object) *statefulSet {
	return &statefulSet{
		owner: ownerOf(key, object), c: c,
		replicas:    number(object, 1, "spec", "replicas"),
		first:       number(object, 0, "spec", "ordinals", "start"),
		partition:   number(object, 0, "spec", "updateStrategy", "rollingUpdate", "partition"),
		minReady:    number(object, 0, "spec", "minReadySeconds"),
		rolling:     world.Text(object, "spec", "updateStrategy", "type") != "OnDelete",
		partitioned: world.Field(object, "spec", "updateStrategy", "rollingUpdate") != nil,
		ordered:     world.Text(object, "spec", "podManagementPolicy") != "Parallel",
		collisions:  number(object, 0, "status", "collisionCount"),
	}
}

// findRevisions finds or makes the revision of the template, and the one that the status calls current
// (getStatefulSetRevisions).
func (s *statefulSet) findRevisions(revisions []revision) {
	wanted := s.c.printOf(s.key, world.Section(s.object, "spec", "template"))
	next := 1
	if len(revisions) > 0 {
		next = revisions[len(revisions)-1].number + 1
	}
	s.update = revision{}
	for i := len(revisions) - 1; i >= 0; i-- {
		if revisions[i].print != wanted {
			continue
		}
		s.update = revisions[i]
		if i < len(revisions)-1 {
			s.update = s.c.renumber(revisions[i], next)
		}
		break
	}
	if s.update.object == nil {
		s.update, s.collisions = s.c.createRevision(s.owner, next, statefulSetHashLabel, s.collisions)
	}
	s.current = s.update
	for _, r := range revisions {
		if r.key.Name == world.Text(s.object, "status", "currentRevision") {
			s.current = r
		}
	}
}

func (s *statefulSet) findPods() {
	s.slots = make([]world.Object, s.replicas)
	for _, pod := range s.c.claim(s.owner, world.Pods) {
		ordinal := s.ordinal(pod)
		switch i := ordinal - s.first; {
		case ordinal < 0:
			continue
		case i >= 0 && i < s.replicas:
			s.slots[i] = pod
		default:
			s.condemned = append(s.condemned, pod)
		}
		s.members = append(s.members, pod)
	}
	slices.SortFunc(s.condemned, func(a, b world.Object) int { return s.ordinal(b) - s.ordinal(a) })
}

// ordinal is -1 for a pod that is not named after the set.
func (s *statefulSet) ordinal(pod world.Object) int {
	rest, ok := strings.CutPrefix(nameOf(pod), s.key.Name+"-")
	ordinal, err := strconv.Atoi(rest)
	if !ok || err != nil || strconv.Itoa(ordinal) != rest {
		return -1
	}
	return ordinal
}

// fill creates the missing pods. With ordered pods it reports false at the first that is missing or not available: each
// waits for those before it (processReplica). This is why a broken pod is not replaced.
func (s *statefulSet) fill() bool {
	for i, pod := range s.slots {
		switch {
		case pod == nil:
			s.create(i)
			if s.ordered {
				return false
			}
		case phaseOf(pod) == "Failed" || phaseOf(pod) == "Succeeded":
			s.c.remove(podKey(s.key.Namespace, nameOf(pod)))
			if s.ordered {
				return false
			}
		case s.ordered && !s.available(pod):
			return false
		}
	}
	return true
}

// create makes the pod of a slot: below the partition from the current revision, else from that of the template
// (newVersionedStatefulSetPod, with the defaults of the API server).
func (s *statefulSet) create(i int) {
	name := s.key.Name + "-" + strconv.Itoa(s.first+i)
	key := podKey(s.key.Namespace, name)
	if _, taken := s.c.store.Get(key); taken {
		s.c.await(key, s.key)
		return
	}
	from := s.update
	if s.rolling && i < s.kept() {
		from = s.current
	}
	template := from.template()
	pod := newPod(s.owner, template, name, nodeFor(s.members))
	labels := plus(world.Labels(template), "statefulset.kubernetes.io/pod-name", name)
	labels = plus(labels, "apps.kubernetes.io/pod-index", strconv.Itoa(s.first+i))
	pod = world.With(pod, plus(labels, revisionHashLabel, from.key.Name), "metadata", "labels")
	spec := plus(world.Section(pod, "spec"), "hostname", name)
	if service := world.Text(s.object, "spec", "serviceName"); service != "" {
		spec["subdomain"] = service
	}
	pod["spec"] = spec
	s.c.put(key, pod)
}

// kept is how many pods are made from the current revision during a rolling update.
func (s *statefulSet) kept() int {
	if s.partitioned {
		return s.partition
	}
	return number(s.object, 0, "status", "currentReplicas")
}

// shrink removes pods beyond the number of replicas, with ordered pods one in a pass and only while no other than the lowest
// is unavailable. It reports whether the update may go on (processCondemned).
func (s *statefulSet) shrink() bool {
	lowest := -1
	for i, pod := range s.condemned {
		if !s.available(pod) {
			lowest = i
		}
	}
	for i, pod := range s.condemned {
		if s.ordered && !s.available(pod) && i != lowest {
			return false
		}
		s.c.remove(podKey(s.key.Namespace, nameOf(pod)))
		if s.ordered {
			return false
		}
	}
	return true
}

// replace removes the pod with the highest ordinal that has another revision, unless a pod above it is not available, or was
// created in this pass.
func (s *statefulSet) replace() {
	for i := s.replicas - 1; i >= s.partition; i-- {
		pod := s.slots[i]
		if pod != nil && podRevision(pod) != s.update.key.Name {
			s.c.remove(podKey(s.key.Namespace, nameOf(pod)))
			s.replaced++
			return
		}
		if pod == nil || !s.available(pod) {
			return
		}
	}
}

func (s *statefulSet) available(pod world.Object) bool {
	return phaseOf(pod) == "Running" && !deleting(pod) && available(pod, s.minReady)
}
