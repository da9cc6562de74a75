package apiserver

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rollout is the custom resource that the model serves, with what Argo's Rollout has in common with a Deployment, and the time of a
// restart. Its schema keeps nothing else. The defaults of pods are set in its template, as if the schema had them: Argo's controller
// leaves the template as it is and compares with the defaults.
type rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              rolloutSpec   `json:"spec,omitempty"`
	Status            rolloutStatus `json:"status,omitempty"`
}

type rolloutSpec struct {
	appsv1.DeploymentSpec `json:",inline"`
	// RestartAt is kept as it is written, as a custom resource keeps it.
	RestartAt string `json:"restartAt,omitempty"`
}

type rolloutStatus struct {
	appsv1.DeploymentStatus `json:",inline"`
	RestartedAt             string `json:"restartedAt,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (r *rollout) DeepCopyObject() runtime.Object {
	copied := *r
	r.DeepCopyInto(&copied.ObjectMeta)
	r.Spec.DeepCopyInto(&copied.Spec.DeploymentSpec)
	r.Status.DeepCopyInto(&copied.Status.DeploymentStatus)
	return &copied
}

// A custom resource has no protobuf form. No client is answered with these.

// Marshal encodes as JSON.
func (r *rollout) Marshal() ([]byte, error) { return json.Marshal(r) }

// Unmarshal reads what Marshal writes.
func (r *rollout) Unmarshal(data []byte) error { return json.Unmarshal(data, r) }

// Marshal encodes as JSON.
func (s *rolloutSpec) Marshal() ([]byte, error) { return json.Marshal(s) }

// Unmarshal reads what Marshal writes.
func (s *rolloutSpec) Unmarshal(data []byte) error { return json.Unmarshal(data, s) }

// Marshal encodes as JSON.
func (s *rolloutStatus) Marshal() ([]byte, error) { return json.Marshal(s) }

// Unmarshal reads what Marshal writes.
func (s *rolloutStatus) Unmarshal(data []byte) error { return json.Unmarshal(data, s) }
