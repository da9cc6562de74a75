package simulate

import (
	"encoding/json"
	"fmt"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// labelled is what of the metadata the other webhooks read.
type labelled struct {
	Metadata *struct {
		Annotations world.Object `json:"annotations"`
	} `json:"metadata"`
}

// outline returns the annotations of a workload and of its pod template, each at its place. The other webhooks of the cluster
// look at nothing else, and decoding a whole workload takes several times as long.
func outline(raw []byte) (world.Object, error) {
	var o struct {
		labelled
		Spec struct {
			Template    *labelled `json:"template"`
			JobTemplate *struct {
				Spec struct {
					Template *labelled `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("decode the object of a review: %w", err)
	}
	spec := world.Object{}
	if o.Spec.Template != nil {
		spec["template"] = o.Spec.Template.object()
	}
	if o.Spec.JobTemplate != nil && o.Spec.JobTemplate.Spec.Template != nil {
		spec["jobTemplate"] = world.Object{"spec": world.Object{"template": o.Spec.JobTemplate.Spec.Template.object()}}
	}
	out := o.object()
	out["spec"] = spec
	return out, nil
}

func (l labelled) object() world.Object {
	if l.Metadata == nil {
		return world.Object{}
	}
	metadata := world.Object{}
	if l.Metadata.Annotations != nil {
		metadata["annotations"] = l.Metadata.Annotations
	}
	return world.Object{"metadata": metadata}
}
