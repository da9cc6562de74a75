package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rollout is the custom resource that the model serves, with what Argo's Rollout has in common with a Deployment. Its schema
// keeps nothing else. The defaults of pods are set in its template, as if the schema had them: Argo's controller leaves the
// template as it is and compares with the defaults.
type rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              appsv1.DeploymentSpec   `json:"spec,omitempty"`
	Status            appsv1.DeploymentStatus `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (r *rollout) DeepCopyObject() runtime.Object {
	copied := &rollout{TypeMeta: r.TypeMeta}
	r.DeepCopyInto(&copied.ObjectMeta)
	r.Spec.DeepCopyInto(&copied.Spec)
	r.Status.DeepCopyInto(&copied.Status)
	return copied
}

// Marshal encodes as a Deployment. No client is answered so: a custom resource has no protobuf form.
func (r *rollout) Marshal() ([]byte, error) {
	return (&appsv1.Deployment{ObjectMeta: r.ObjectMeta, Spec: r.Spec, Status: r.Status}).Marshal()
}

// Unmarshal reads what Marshal writes.
func (r *rollout) Unmarshal(data []byte) error {
	var d appsv1.Deployment
	if err := d.Unmarshal(data); err != nil {
		return err
	}
	r.ObjectMeta, r.Spec, r.Status = d.ObjectMeta, d.Spec, d.Status
	return nil
}
