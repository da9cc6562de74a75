package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// referent is the type of the custom resources that refer to each other: filters and proxies. Its schema has the fields of both.
type referent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              referentSpec   `json:"spec,omitempty"`
	Status            referentStatus `json:"status,omitempty"`
}

type referentSpec struct {
	Mode       string          `json:"mode,omitempty"`
	FilterRefs []nameReference `json:"filterRefs,omitempty"`
	SecretRef  *nameReference  `json:"secretRef,omitempty"`
	ConfigRef  *nameReference  `json:"configRef,omitempty"`
}

type nameReference struct {
	Name string `json:"name"`
}

type referentStatus struct {
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	Conditions         []referentCondition `json:"conditions,omitempty"`
	// Seen is for writes that mean nothing.
	Seen string `json:"seen,omitempty"`
}

type referentCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (r *referent) DeepCopyObject() runtime.Object {
	copied := &referent{TypeMeta: r.TypeMeta, Spec: r.Spec, Status: r.Status}
	r.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.FilterRefs = slices.Clone(r.Spec.FilterRefs)
	copied.Spec.SecretRef, copied.Spec.ConfigRef = r.Spec.SecretRef.clone(), r.Spec.ConfigRef.clone()
	copied.Status.Conditions = slices.Clone(r.Status.Conditions)
	return copied
}

func (r *nameReference) clone() *nameReference {
	if r == nil {
		return nil
	}
	return &nameReference{r.Name}
}

// A custom resource has no protobuf form, and no client is answered so: what is compared is the JSON form.

// Marshal encodes as JSON.
func (r *referent) Marshal() ([]byte, error) { return json.Marshal(r) }

// Unmarshal reads what Marshal writes.
func (r *referent) Unmarshal(data []byte) error { return json.Unmarshal(data, r) }

// Marshal encodes as JSON.
func (s *referentSpec) Marshal() ([]byte, error) { return json.Marshal(s) }

// Unmarshal reads what Marshal writes.
func (s *referentSpec) Unmarshal(data []byte) error { return json.Unmarshal(data, s) }

// Marshal encodes as JSON.
func (s *referentStatus) Marshal() ([]byte, error) { return json.Marshal(s) }

// Unmarshal reads what Marshal writes.
func (s *referentStatus) Unmarshal(data []byte) error { return json.Unmarshal(data, s) }

// graphKinds returns how the resources of a graph are served.
func graphKinds() []*kind {
	all := []*kind{}
	for _, r := range world.GraphResources() {
		k := define(r, func() object { return &referent{} })
		k.custom, k.guarded, k.annotates = true, true, true
		all = append(all, k)
	}
	return all
}

// owners has the annotations that each field manager has applied to custom resources.
type owners struct {
	mu      sync.Mutex
	applied map[owner][]string
}

type owner struct {
	key     world.Key
	uid     string
	manager string
}

// replace returns what a field manager owned before, and records what it owns now.
func (o *owners) replace(by owner, keys []string, dryRun bool) (before []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before = o.applied[by]
	if !dryRun {
		if o.applied == nil {
			o.applied = map[owner][]string{}
		}
		o.applied[by] = keys
	}
	return before
}

// applyAnnotations is server-side apply of nothing but annotations, by force. Other fields are refused: the model keeps no
// managed fields of custom resources.
func (s *Server) applyAnnotations(q *request) (answer, error) {
	var body struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			UID         string            `json:"uid"`
			Version     string            `json:"resourceVersion"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := yaml.UnmarshalStrict(q.call.Body, &body); err != nil {
		return answer{}, apierrors.NewBadRequest(fmt.Sprintf("the model applies annotations only: %v", err))
	}
	manager := q.query.Get("fieldManager")
	if manager == "" || !q.forced() {
		return answer{}, apierrors.NewBadRequest("the model wants fieldManager and force=true")
	}
	if s.store.get(q.kind, q.at, 0) == nil {
		if body.Metadata.UID != "" {
			return answer{}, apierrors.NewConflict(q.kind.gr, q.at.name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", body.Metadata.UID))
		}
		return answer{}, apierrors.NewNotFound(q.kind.gr, q.at.name)
	}
	return s.update(q, func(old *item) (object, error) {
		if err := q.checkNamed(body.Metadata.UID, body.Metadata.Version, old); err != nil {
			return nil, err
		}
		next := clone(old.typed)
		meta := metaOf(next)
		for _, key := range s.owners.replace(owner{q.call.Key, string(meta.UID), manager}, slices.Sorted(maps.Keys(body.Metadata.Annotations)), q.call.DryRun) {
			if _, still := body.Metadata.Annotations[key]; !still {
				delete(meta.Annotations, key)
			}
		}
		if meta.Annotations == nil && len(body.Metadata.Annotations) > 0 {
			meta.Annotations = map[string]string{}
		}
		maps.Copy(meta.Annotations, body.Metadata.Annotations)
		return next, nil
	})
}

// checkNamed compares the uid and the resourceVersion that an apply names, if any, with those of the object.
func (q *request) checkNamed(uid, version string, old *item) error {
	if uid != "" && uid != string(old.meta().UID) {
		return apierrors.NewConflict(q.kind.gr, q.at.name, fmt.Errorf("uid mismatch: %s, want %s", uid, old.meta().UID))
	}
	if version != "" && version != old.meta().ResourceVersion {
		return errModified(q.kind, q.at.name)
	}
	return nil
}
