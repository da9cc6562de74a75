package gather

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A deletion leaves no version to compare: what the API server had at the creation says whether the object was there.
func TestDeletionBehindACreationIsNotAdopted(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	old, later, absent := digest.State{ResourceVersion: "4"}, digest.State{ResourceVersion: "6"}, digest.State{Absent: true}
	for name, tc := range map[string]struct {
		past    digest.State
		err     error
		want    digest.State
		changed bool
	}{
		"it was there":                         {past: old, want: old, changed: true},
		"it was not":                           {past: absent, want: absent},
		"the old version is not kept":          {err: errors.New("expired"), want: absent},
		"another storage with other revisions": {past: later, want: absent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := Gatherer{Past: func(context.Context, string, reference.Ref, string) (digest.State, error) { return tc.past, tc.err }}
			got, changed := g.stateAt(t.Context(), Subject{Key: workload.Key{Namespace: "shop", Name: "import"}}, app, absent, "5")
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.changed, changed)
		})
	}
}
