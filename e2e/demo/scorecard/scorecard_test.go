package scorecard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
)

func at(seconds float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestJudging(t *testing.T) {
	t.Parallel()
	sure := func(n int) scorecard.Count { return scorecard.Count{N: n, Certain: true} }
	tests := map[string]struct {
		got      scorecard.Finding
		observed string
		kept     bool
	}{
		"as many rollouts as promised":       {scorecard.Rollouts(1, sure(1)), "1", true},
		"each of several":                    {scorecard.Rollouts(1, sure(1), sure(1)), "1, 1", true},
		"none, as promised":                  {scorecard.Rollouts(0, sure(0)), "0", true},
		"one too many":                       {scorecard.Rollouts(0, sure(1)), "1", false},
		"one of several is missing":          {scorecard.Rollouts(1, sure(1), sure(0)), "1, 0", false},
		"none, but more may come":            {scorecard.Rollouts(0, scorecard.Count{}), "0 so far", false},
		"nothing was counted":                {scorecard.Rollouts(0), "", false},
		"a further condition holds":          {scorecard.Rollouts(1, sure(1)).And(true, "both", "not both"), "1, both", true},
		"a further condition fails":          {scorecard.Rollouts(1, sure(1)).And(false, "both", "not both"), "1, not both", false},
		"a condition does not mend a count":  {scorecard.Rollouts(1, sure(2)).And(true, "both", "not both"), "2, both", false},
		"far enough apart":                   {scorecard.Apart(scorecard.Rollouts(2, sure(2)), 5*time.Second, at(0), at(5.1)), "2, 5.1 s apart", true},
		"too close":                          {scorecard.Apart(scorecard.Rollouts(2, sure(2)), 5*time.Second, at(0), at(4.9)), "2, 4.9 s apart", false},
		"the shortest distance counts":       {scorecard.Apart(scorecard.Rollouts(3, sure(3)), 5*time.Second, at(0), at(6), at(7), at(14)), "3, 1.0 s apart", false},
		"one has no distance":                {scorecard.Apart(scorecard.Rollouts(2, sure(1)), 5*time.Second, at(0)), "1", false},
		"refused as promised":                {scorecard.Refused(1, "Error (Conflict): no", "(Conflict)", "409"), "409", true},
		"refused for another reason":         {scorecard.Refused(1, "Error (Forbidden)", "(Conflict)", "409"), "failed, but not with 409", false},
		"not refused":                        {scorecard.Refused(0, "(Conflict)", "(Conflict)", "409"), "accepted", false},
		"the cause is named everywhere":      {scorecard.Named("a", scorecard.Source{Name: "x", Text: "a b"}, scorecard.Source{Name: "y", Text: "a"}), "in x and y", true},
		"the cause is not named in one":      {scorecard.Named("a", scorecard.Source{Name: "x", Text: "a"}, scorecard.Source{Name: "y", Text: "b"}), "not in y", false},
		"nothing that could name it":         {scorecard.Named("a"), "not in ", false},
		"an empty text names nothing at all": {scorecard.Named("a", scorecard.Source{Name: "x"}), "not in x", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, scorecard.Finding{Observed: tc.observed, Kept: tc.kept}, tc.got)
		})
	}
}

func TestCardHidesNothing(t *testing.T) {
	t.Parallel()
	kept := scorecard.Finding{Observed: "1", Kept: true}
	var card scorecard.Card
	assert.Zero(t, card.Broken())

	first := card.Promise("first", "1")
	assert.Equal(t, 1, card.Broken(), "a promise that was not judged is not kept")
	first.Judge(kept)
	assert.Zero(t, card.Broken())

	second, third := card.Promise("second", "1"), card.Promise("third", "1")
	second.Judge(kept)
	card.FailFrom(1)
	third.Judge(kept)
	assert.Equal(t, 2, card.Broken(), "what a step observed that went wrong proves nothing, before or after")
	assert.Equal(t, []scorecard.Row{*first, *second, *third}, card.Rows())
	assert.Equal(t, "1", card.Rows()[2].Observed, "what was seen is shown all the same")
}

func TestTable(t *testing.T) {
	t.Parallel()
	var card scorecard.Card
	card.Promise("a label edit", "0 rollouts").Judge(scorecard.Finding{Observed: "0", Kept: true})
	card.Promise("a café changes", "1").Judge(scorecard.Finding{Observed: "2, too many"})
	want := strings.TrimLeft(`
WHAT HAPPENS     PROMISED     OBSERVED
a label edit     0 rollouts   0             ✓
a café changes   1            2, too many   ✗
`, "\n")
	assert.Equal(t, want, scorecard.Table(card.Rows(), scorecard.Style{}))

	bracket := func(text string) string { return "<" + text + ">" }
	styled := scorecard.Table(card.Rows(), scorecard.Style{Head: bracket, Broken: bracket})
	assert.Equal(t, strings.NewReplacer("WHAT", "<WHAT", "OBSERVED", "OBSERVED>", "✗", "<✗>").Replace(want), styled,
		"decoration does not disturb the alignment")
}
