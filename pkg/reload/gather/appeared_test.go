package gather

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

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
		"its creation was not seen":       {since: "7", trigger: appears, want: present},
		"the workload was not seen":       {created: "8", trigger: appears, want: present},
		"it is named":                     {created: "8", since: "7", trigger: annotation.Trigger{OnCreate: true}, want: present},
		"it is recorded":                  {created: "8", since: "7", trigger: appears, known: recorded, want: present},
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
