package event_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/event"
)

func TestActionsTellTextsApart(t *testing.T) {
	t.Parallel()
	one, both := event.Action("Reload", "secret/one deleted"), event.Action("Reload", "secret/one deleted, secret/two deleted")
	assert.NotEqual(t, one, both, "what is new must not be counted on what was said before")
	assert.Equal(t, one, event.Action("Reload", "secret/one deleted"), "what is the same is counted")
	assert.Regexp(t, `^Reload-[0-9a-f]{8}$`, one)
}

func TestNotesFitTheAPI(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "short", event.Note("short"))
	whole := strings.Repeat("é", 500)
	assert.Equal(t, whole, event.Note(whole), "1000 bytes fit")
	cut := event.Note("x" + strings.Repeat("é", 600))
	assert.LessOrEqual(t, len(cut), 1024, "the API server refuses a longer one")
	assert.True(t, utf8.ValidString(cut), "it is cut between characters: %q", cut)
	assert.True(t, strings.HasSuffix(cut, "é…"), "it shows that there was more: %q", cut)
}
