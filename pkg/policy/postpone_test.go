package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
			in.Known = known(newest(t), items{b: item(t, b, "B", "1")})
			in.Current[b] = state(t, b, "", "2")
		}, want: true},
		"one to adopt, not read, and one as it was": {known: "", now: "", change: func(t *testing.T, in *Input) {
			t.Helper()
			in.Intent = intent(every, a, b)
			in.Known = known(newest(t), items{b: item(t, b, "B", "1")})
			in.Current[b] = state(t, b, "", "1")
		}},
		"the object may have been created, and nothing is known of it": {known: "-", now: "A", change: func(_ *testing.T, in *Input) { unobserved(in) }, want: true},
		"first seen, nothing is known of it":                           {known: "", now: "A", change: func(_ *testing.T, in *Input) { unobserved(in) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, c.known, c.now)
			if c.change != nil {
				c.change(t, &in)
			}
			assert.Equal(t, c.want, Assess(in).MayReload)
		})
	}
}

func required(_ *testing.T, in *Input) { in.Required[a] = true }

func foreign(t *testing.T, in *Input) {
	t.Helper()
	in.Known = known("00000000", items{a: item(t, a, "A", "1")})
}
