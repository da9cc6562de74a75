package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestAdopt(t *testing.T) {
	t.Parallel()
	type items = map[reference.Ref]record.Item
	foreign := record.Item{Key: "00000000", Entry: "0000000000000000"}
	for name, c := range map[string]struct {
		change func(*Adoption)
		want   items
		folded bool
		wrong  string
	}{
		"at first sight": {
			func(*Adoption) {}, items{a: item(t, a, "A", "2"), b: {Key: newest(t)}}, false, "",
		},
		"what is kept stays under its key, and the rest comes under the same": {
			func(d *Adoption) {
				d.Previous = &record.Baseline{Record: record.Record{Items: items{b: itemUnder(t, oldest(t), b, "B", "1")}}}
				d.Verdict.Adopt = []reference.Ref{a}
			}, items{a: itemUnder(t, oldest(t), a, "A", "2"), b: itemUnder(t, oldest(t), b, "B", "1")}, false, "",
		},
		"what is adopted again comes under the newest key": {
			func(d *Adoption) {
				d.Previous = &record.Baseline{Record: record.Record{Items: items{a: itemUnder(t, oldest(t), a, "B", "1")}}}
			}, items{a: item(t, a, "A", "2"), b: {Key: newest(t)}}, false, "",
		},
		"what is not tracked now stays": {
			func(d *Adoption) {
				delete(d.Input.Intent.Tracked, b)
				d.Verdict.Adopt = []reference.Ref{a}
				d.Previous = &record.Baseline{Record: record.Record{Items: items{b: item(t, b, "B", "1")}}}
			}, items{a: item(t, a, "A", "2"), b: item(t, b, "B", "1")}, false, "",
		},
		"what is neither tracked nor comparable goes": {
			func(d *Adoption) {
				delete(d.Input.Intent.Tracked, b)
				d.Verdict.Adopt = []reference.Ref{a}
				d.Previous = &record.Baseline{Record: record.Record{Items: items{b: foreign}}}
			}, items{a: item(t, a, "A", "2")}, false, "",
		},
		"nothing tracked is lost for a foreign key": {
			func(d *Adoption) {
				d.Verdict.Adopt = []reference.Ref{a}
				d.Previous = &record.Baseline{Record: record.Record{Items: items{b: foreign}}}
			}, nil, false, ErrForeign.Error(),
		},
		"a folded known state is replaced as a whole": {
			func(d *Adoption) {
				d.Input.Known = record.Known{Fold: &record.Fold{}}
				d.Previous = &record.Baseline{Record: record.Record{Fold: &record.Fold{}}}
			}, items{a: item(t, a, "A", "2"), b: {Key: newest(t)}}, false, "",
		},
		"without room for names it is folded": {func(d *Adoption) { d.Limit = 50 }, nil, true, ""},
		"but not over a pending change": {
			func(d *Adoption) { d.Limit, d.Verdict.Changes = 50, []Change{{a, Modified}} }, nil, false, "while a change is pending",
		},
		"without room at all": {func(d *Adoption) { d.Limit = 20 }, nil, false, "room for a baseline of 20 bytes"},
		"without room, not all was read": {
			func(d *Adoption) {
				d.Limit, d.Verdict.Adopt = 50, []reference.Ref{b}
				d.Previous = &record.Baseline{Record: record.Record{Items: items{a: item(t, a, "A", "1")}}}
				d.Input.Current[a] = state(t, a, "", "2")
			}, nil, false, "has not been read",
		},
		"not read": {func(d *Adoption) { d.Input.Current[a] = state(t, a, "", "2") }, nil, false, "has not been read"},
		"no key":   {func(d *Adoption) { d.Input.Ring = digest.Ring{} }, nil, false, digest.ErrNoKey.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{
				Intent: intent(every, a, b), Ring: ring(t),
				Current: map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "-", "")},
			}
			adoption := Adoption{Input: in, Verdict: Verdict{Adopt: []reference.Ref{a, b}}, TemplateHash: "h", Limit: record.MaxSize}
			c.change(&adoption)
			baseline, folded, err := Adopt(adoption)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.folded, folded)
			assert.Equal(t, c.want, baseline.Items)
			assert.LessOrEqual(t, len(baseline.String()), adoption.Limit)
			read, err := record.ParseBaseline(baseline.String())
			require.NoError(t, err)
			assert.Equal(t, "h", read.Over)
			assert.Equal(t, baseline.String(), read.String())
		})
	}
}
