package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestMayReload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, now string
		change     func(*testing.T, *Input)
		want       bool
	}{
		"a change is due": {known: "A", now: "B", want: true},
		"a change may be, its content was not read":   {known: "A", now: "", want: true},
		"a reload is held":                            {known: "A", now: "-", change: required, want: true},
		"nothing differs":                             {known: "A", now: "A"},
		"first seen":                                  {known: "", now: "A"},
		"first seen, not read":                        {known: "", now: ""},
		"pods waited for it":                          {known: "-", now: "A", change: required},
		"pods waited for it, not read":                {known: "-", now: "", change: required},
		"recorded under a key that is gone, not read": {known: "A", now: "", change: foreign},
		"one to adopt, not read, and one that changed": {known: "", now: "", change: func(t *testing.T, in *Input) {
			t.Helper()
			in.Intent = intent(every, a, b)
			in.Known.Items[b] = item(t, b, "B", "1")
			in.Current[b] = state(t, b, "", "2")
		}, want: true},
		"one to adopt, not read, and one as it was": {known: "", now: "", change: func(t *testing.T, in *Input) {
			t.Helper()
			in.Intent = intent(every, a, b)
			in.Known.Items[b] = item(t, b, "B", "1")
			in.Current[b] = state(t, b, "", "1")
		}},
		"it may have been created, nothing is known of it": {known: "-", now: "A", change: func(_ *testing.T, in *Input) { unobserved(in) }, want: true},
		"first seen, nothing is known of it":               {known: "", now: "A", change: func(_ *testing.T, in *Input) { unobserved(in) }},
		"a folded state, not read":                         {known: "A", now: "", change: fold, want: true},
		"a folded state of other objects, not read": {known: "A", now: "", change: func(t *testing.T, in *Input) {
			t.Helper()
			fold(t, in)
			in.Intent = intent(every, a, b)
			in.Current[b] = state(t, b, "", "2")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, c.known, c.now)
			if c.change != nil {
				c.change(t, &in)
			}
			assert.Equal(t, c.want, MayReload(in))
		})
	}
}

func required(_ *testing.T, in *Input) { in.Required[a] = true }

func foreign(t *testing.T, in *Input) {
	t.Helper()
	gone, err := digest.NewRing(map[string][]byte{"0": []byte("a key that the ring does not have")[:32]})
	require.NoError(t, err)
	known := in.Known.Items[a]
	known.Key = gone.Keys()[0].ID
	in.Known.Items[a] = known
}

// fold replaces what is known by its fold.
func fold(t *testing.T, in *Input) {
	t.Helper()
	in.Known = folded(t, map[reference.Ref]digest.State{a: state(t, a, "A", "1")})
}
