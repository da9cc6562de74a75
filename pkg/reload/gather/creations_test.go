package gather

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
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
		"the object was there":                 {past: old, want: old, changed: true},
		"the object was not there":             {past: absent, want: absent},
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
		"mounted, then rotated":       {live: rotated, past: &digest.State{Absent: true}, want: digest.State{Absent: true}, changed: true},
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

// created has the versions at which objects were created.
type created struct {
	Store

	versions map[reference.Ref]string
}

func (c created) Created(_ string, ref reference.Ref) string { return c.versions[ref] }

// An object counts as created if its creation was seen and is later than the last write that may have started pods with it.
func TestBeforeAppearance(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	present, absent := digest.State{UID: "u", ResourceVersion: "9"}, digest.State{Absent: true}
	appears := annotation.Trigger{OnCreate: true, OnAppear: true}
	recorded := policy.Known{Record: record.New("", "1c9e04ab", map[reference.Ref]record.Item{app: {Entry: "0123456789abcdef"}})}
	for name, tc := range map[string]struct {
		created, since string
		trigger        annotation.Trigger
		known          policy.Known
		want           digest.State
	}{
		"created later":                   {created: "8", since: "7", trigger: appears, want: absent},
		"created before":                  {created: "6", since: "7", trigger: appears, want: present},
		"more digits are later":           {created: "10", since: "9", trigger: appears, want: absent},
		"the creation was not seen":       {since: "7", trigger: appears, want: present},
		"the workload was not seen":       {created: "8", trigger: appears, want: present},
		"the object is named":             {created: "8", since: "7", trigger: annotation.Trigger{OnCreate: true}, want: present},
		"the object is recorded":          {created: "8", since: "7", trigger: appears, known: recorded, want: present},
		"only the hash is known":          {created: "8", since: "7", trigger: appears, known: policy.Known{Hash: "x"}, want: present},
		"versions that cannot be ordered": {created: "b", since: "a", trigger: appears, want: present},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			versions := &state.Versions{}
			key := workload.Key{Namespace: "shop", Name: "web"}
			if tc.since != "" {
				versions.Changed(key, tc.since)
			}
			g := Gatherer{Versions: versions, Store: created{versions: map[reference.Ref]string{app: tc.created}}}
			in := policy.Input{
				Intent: annotation.Intent{Tracked: map[reference.Ref]annotation.Trigger{app: tc.trigger}},
				Known:  tc.known, Current: map[reference.Ref]digest.State{app: present},
			}
			before, found := g.BeforeAppearance(Subject{Key: key}, in, []reference.Ref{app})
			assert.Equal(t, tc.want, before.Current[app])
			assert.Equal(t, tc.want.Absent, found)
			assert.Equal(t, present, in.Current[app], "the input is not written to")
		})
	}
}
