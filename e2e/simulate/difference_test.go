package simulate

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestDifferenceOfLongTextsIsCutAtAWholeCharacter(t *testing.T) {
	t.Parallel()
	text := difference(world.Object{}, world.Object{"key": strings.Repeat("ä", 100)}) // the quotation mark makes the limit odd
	assert.True(t, utf8.ValidString(text), text)
	assert.Contains(t, text, "…")
}
