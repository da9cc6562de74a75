package cluster

import (
	"cmp"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The labels that hold a ControllerRevision's hash: of a StatefulSet's; a DaemonSet's has revisionHashLabel.
const statefulSetHashLabel = "controller.kubernetes.io/hash"

// revision is a ControllerRevision.
type revision struct {
	key    world.Key
	object world.Object
	number int
	// print is the template in the form in which it is compared.
	print string
}

func (c *Cluster) readRevision(object world.Object) revision {
	key := world.Key{Resource: world.ControllerRevisions, Namespace: world.Text(object, "metadata", "namespace"), Name: nameOf(object)}
	r := revision{key: key, object: object, number: number(object, 0, "revision")}
	r.print = c.printOf(key, r.template())
	return r
}

// template returns the pod template that the revision restores.
func (r revision) template() world.Object { return world.Section(r.object, "data", "spec", "template") }

// revisions returns the revisions of an owner, sorted by number.
func (c *Cluster) revisions(o owner) []revision {
	var all []revision
	for _, object := range c.claim(o, world.ControllerRevisions) {
		all = append(all, c.readRevision(object))
	}
	slices.SortStableFunc(all, func(a, b revision) int {
		return cmp.Or(cmp.Compare(a.number, b.number), byAge(a.object, b.object))
	})
	return all
}

// renumber gives a revision another number, because its template is the current one again.
func (c *Cluster) renumber(r revision, number int) revision {
	if stored := c.put(r.key, world.With(r.object, int64(number), "revision")); stored != nil {
		r.object, r.number = stored, number
	}
	return r
}

// createRevision stores a revision of the owner's template. One of its name with the same template is used as it is, also if
// an owner that is gone made it: the garbage collector takes it, and it is created anew. The collision count rises if
// the name is taken by another template.
func (c *Cluster) createRevision(o owner, number int, label string, collisions int) (revision, int) {
	template := world.Section(o.object, "spec", "template")
	wanted := c.printOf(o.key, template)
	for {
		hash := hashOf(wanted, collisions)
		key := world.Key{Resource: world.ControllerRevisions, Namespace: o.key.Namespace, Name: o.key.Name + "-" + hash}
		if existing, taken := c.store.Get(key); taken {
			if r := c.readRevision(existing); r.print == wanted {
				return r, collisions
			}
			collisions++
			continue
		}
		metadata := world.Object{
			"name": key.Name, "namespace": key.Namespace, "ownerReferences": []any{o.reference()},
			"labels": plus(world.Section(template, "metadata", "labels"), label, hash),
		}
		if annotations := world.Annotations(o.object); len(annotations) > 0 {
			metadata["annotations"] = annotations
		}
		object := world.Object{
			"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": int64(number),
			"data": world.Object{"spec": world.Object{"template": plus(template, "$patch", "replace")}},
		}
		r := revision{key: key, object: object, number: number, print: wanted}
		if stored := c.put(key, object); stored != nil {
			r.object = stored
		}
		return r, collisions
	}
}

// truncate removes the oldest revisions beyond the limit; live ones are left out.
func (c *Cluster) truncate(old []revision, limit int) {
	for _, r := range old[:max(len(old)-limit, 0)] {
		c.remove(r.key)
	}
}
