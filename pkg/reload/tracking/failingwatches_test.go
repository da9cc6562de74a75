package tracking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition maps a kind to a resource, or to none.
type definition struct{ name string }

func (d *definition) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if d.name == "" {
		return nil, &meta.NoKindMatchError{GroupKind: gk}
	}
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: gk.Group, Resource: d.name}}, nil
}

// The watch whose health counts is that of the resource that the kind has now.
func TestResourceOfAKindIsLookedUpAgain(t *testing.T) {
	t.Parallel()
	w, d, now := &watched{kind: fleet(t, "spec.template")}, &definition{}, time.Now()
	for _, step := range []struct{ name, want, because string }{
		{"", "", "the cluster does not serve the kind"},
		{"fleets", "fleets." + w.kind.Group, "it does now"},
		{"", "fleets." + w.kind.Group, "it does not at the moment: this is still what is watched"},
		{"ships", "ships." + w.kind.Group, "the definition was created again with another name"},
	} {
		d.name = step.name
		now = now.Add(resolvedFor)
		assert.Equal(t, step.want, w.resource(d, now), step.because)
		d.name = "other"
		if step.want != "" {
			assert.Equal(t, step.want, w.resource(d, now.Add(resolvedFor-1)), "it is kept for a while")
		}
	}
}
