package repository

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

func TestReuse(t *testing.T) {
	t.Parallel()
	files := trackedFiles(t)
	require.Contains(t, files, "REUSE.toml")
	problems, err := checkReuse(os.DirFS(toolchain.RootOf(t)), files)
	require.NoError(t, err)
	assert.Empty(t, problems)
	t.Logf("%d files have a license and a copyright", len(files))
}

// Readers look for the license at the root; REUSE wants it in LICENSES.
func TestLicenseIsThatOfReuse(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(filepath.Join(toolchain.RootOf(t), "LICENSES", "Apache-2.0.txt"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(toolchain.RootOf(t), "LICENSE"))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text))
}

// The check itself must notice what is wrong, or it is worth nothing.
func TestReuseCheck(t *testing.T) {
	t.Parallel()
	const (
		all     = "[[annotations]]\npath = \"**\"\nSPDX-FileCopyrightText = \"us\"\n" + licenseTag + " = \"Apache-2.0\"\n"
		goFiles = "[[annotations]]\npath = [\n  \"*.go\", # sources\n]\nSPDX-FileCopyrightText = \"us\"\n" + licenseTag + " = \"Apache-2.0\"\n"
		toml    = "[[annotations]]\npath = \"REUSE.toml\"\nSPDX-FileCopyrightText = \"us\"\n" + licenseTag + " = \"Apache-2.0\"\n"
	)
	tests := map[string]struct {
		reason   string
		config   string
		files    map[string]string
		problems []string
	}{
		"AllCovered": {
			reason: "** reaches into directories and matches hidden files",
			config: "version = 1\n" + all,
			files:  map[string]string{"a/b.go": "", ".hidden": "", "LICENSES/Apache-2.0.txt": "text", "LICENSE": "text"},
		},
		"OneFileNotCovered": {
			reason:   "* stays within the directory",
			config:   goFiles + toml,
			files:    map[string]string{"a.go": "", "a/b.go": "", "LICENSES/Apache-2.0.txt": ""},
			problems: []string{"a/b.go: no license; add it to REUSE.toml", "a/b.go: no copyright; add it to REUSE.toml"},
		},
		"NoCopyright": {
			reason:   "a license alone does not say whose the file is",
			config:   "[[annotations]]\npath = \"**\"\n" + licenseTag + " = \"Apache-2.0\"\n",
			files:    map[string]string{"LICENSES/Apache-2.0.txt": ""},
			problems: []string{"REUSE.toml: no copyright; add it to REUSE.toml"},
		},
		"TextMissing": {
			reason:   "a license that is used has its text",
			config:   all,
			problems: []string{"REUSE.toml: is under Apache-2.0, but there is no LICENSES/Apache-2.0.txt"},
		},
		"TextUnused": {
			reason:   "a text that nothing is under misleads",
			config:   all,
			files:    map[string]string{"LICENSES/Apache-2.0.txt": "", "LICENSES/MIT.txt": ""},
			problems: []string{"LICENSES/MIT.txt: nothing is under this license"},
		},
		"TagInFile": {
			reason: "a file may name licenses itself; they need their text as well",
			config: all,
			files: map[string]string{
				"LICENSES/Apache-2.0.txt": "", "LICENSES/MIT.txt": "",
				"x.go": "// " + licenseTag + ": (MIT OR BSD-3-Clause)\n",
			},
			problems: []string{"x.go: is under BSD-3-Clause, but there is no LICENSES/BSD-3-Clause.txt"},
		},
		"GlobMatchesNothing": {
			reason:   "a left-over line hides that its file moved",
			config:   all + goFiles,
			files:    map[string]string{"LICENSES/Apache-2.0.txt": ""},
			problems: []string{`REUSE.toml: "*.go" matches no file`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{"REUSE.toml": {Data: []byte(test.config)}}
			files := []string{"REUSE.toml"}
			for file, content := range test.files {
				tree[file] = &fstest.MapFile{Data: []byte(content)}
				files = append(files, file)
			}
			problems, err := checkReuse(tree, files)
			require.NoError(t, err)
			assert.ElementsMatch(t, test.problems, problems, test.reason)
		})
	}
}

func TestReuseRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, config, want string }{
		"UnknownKey":  {"a typo would leave files uncovered", "[[annotations]]\npaths = \"**\"\n", `REUSE.toml:2: unknown key "paths"`},
		"NotAString":  {"values are strings", "[[annotations]]\npath = **\n", "REUSE.toml:2: ** is not a quoted string"},
		"OpenList":    {"half a file was written", "[[annotations]]\npath = [\n\"a\",\n", "REUSE.toml:2: the list is not closed"},
		"NoTable":     {"keys belong to a table", "path = \"**\"\n", `is before the first [[annotations]]`},
		"NoKeyValue":  {"nothing is skipped", "[[annotations]]\nrubbish\n", `"rubbish" is not KEY = VALUE`},
		"OtherTables": {"nothing is skipped", "[[annotations]]\n[other]\n", `"[other]" is not KEY = VALUE`},
		"FutureVersion": {
			"another version may mean something else", "version = 2\n", `REUSE.toml:1: "version = 2" is before`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := checkReuse(fstest.MapFS{"REUSE.toml": {Data: []byte(test.config)}}, []string{"REUSE.toml"})
			assert.ErrorContains(t, err, test.want, test.reason)
		})
	}
}
