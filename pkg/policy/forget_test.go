package policy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// That an object was recorded as absent decides something only where its creation triggers and no pod waits for it. In all other cases
// the Record may forget the name: the object is adopted when it comes. annotation.Resolve forgets by this rule.
func TestRecordedAbsenceDecidesOnlyWhereCreationsTrigger(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 4 {
		onCreate, required := bits&1 != 0, bits&2 != 0
		trigger := annotation.Trigger{OnCreate: onCreate, OnDelete: bits&4 != 0, OnMissing: bits&8 != 0}
		t.Run(fmt.Sprintf("%+v, required %t", trigger, required), func(t *testing.T) {
			t.Parallel()
			recorded, forgotten := input(t, "-", "A"), input(t, "", "A")
			for _, in := range []*Input{&recorded, &forgotten} {
				in.Intent, in.Required[a] = intent(trigger, a), required
			}
			known, unknown := Assess(recorded), Assess(forgotten)
			assert.Equal(t, Nothing, unknown.Verdict.Action, "an unknown object is adopted")
			assert.Equal(t, []reference.Ref{a}, unknown.Verdict.Adopt)
			if onCreate && !required {
				assert.Equal(t, []Change{{Ref: a, Type: Created}}, known.Verdict.Changes)
				return
			}
			assert.Equal(t, unknown, known, "the Record says no more than nothing")
		})
	}
}
