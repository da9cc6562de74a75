package poll

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNote(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	var out strings.Builder
	require.NoError(t, note(&out, "", "TestA", "no file is named"))
	require.NoError(t, note(&out, file, "TestA/b", "two\n  lines"))
	require.NoError(t, note(&out, file, "TestC", strings.Repeat("ä", longest)))
	const first, second = "TestA: no file is named\n", "TestA/b: two lines\n"
	third := "TestC: " + strings.Repeat("ä", longest/2) + " …\n"
	assert.Equal(t, first+second+third, out.String(), "each note is one line of limited length")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, second+third, string(kept))
	assert.Error(t, note(&out, t.TempDir(), "TestA", "a directory is no file"))
}
