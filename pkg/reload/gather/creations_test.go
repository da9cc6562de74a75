package gather

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// The driver rotates what the pods have mounted right after the workload was created.
func TestRotationBehindACreationIsNotAdopted(t *testing.T) {
	t.Parallel()
	class := reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}
	first := digest.State{UID: "a", ResourceVersion: "4", Mounted: true}
	rotated := digest.State{UID: "a", ResourceVersion: "6"}
	mounted := digest.State{UID: "b", ResourceVersion: "6", Mounted: true}
	for name, tc := range map[string]struct {
		live    digest.State
		past    *digest.State
		want    digest.State
		changed bool
	}{
		"rotated":                     {live: rotated, past: &first, want: first, changed: true},
		"rotated before":              {live: digest.State{UID: "a", ResourceVersion: "5"}, want: digest.State{UID: "a", ResourceVersion: "5"}},
		"mounted, then rotated":       {live: rotated, past: &digest.State{Absent: true}, want: rotated},
		"a pod of its own mounted it": {live: mounted, want: mounted},
		"no pod has it any more":      {live: digest.State{Absent: true}, want: digest.State{Absent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := Gatherer{Past: func(context.Context, string, reference.Ref, string) (digest.State, error) {
				require.NotNil(t, tc.past, "what was before does not matter")
				return *tc.past, nil
			}}
			got, changed := g.stateAt(t.Context(), Subject{Key: workload.Key{Namespace: "shop", Name: "import"}}, class, tc.live, "5")
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.changed, changed)
		})
	}
}
