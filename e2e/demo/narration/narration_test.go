package narration_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0 ms": 0, "43 ms": 43*time.Millisecond + 900*time.Microsecond, "1.0 s": time.Second, "65.5 s": 65500 * time.Millisecond,
	} {
		assert.Equal(t, want, narration.Seconds(d))
	}
	assert.Equal(t, "+43 ms", narration.After(43*time.Millisecond))
	assert.Equal(t, "at once", narration.After(-time.Millisecond), "it was there when the command ended")
}

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"short":                       {"a b", []string{"a b"}},
		"just fits":                   {"abcd efgh", []string{"abcd efgh"}},
		"between words":               {"abcd efgh i", []string{"abcd efgh", "i"}},
		"a word that is too long":     {"a abcdefghijkl b", []string{"a", "abcdefghijkl", "b"}},
		"characters count, not bytes": {"äöüä ßéèê", []string{"äöüä ßéèê"}},
		"white space":                 {" a \n b ", []string{"a b"}},
		"nothing":                     {"", []string{""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, narration.Wrap(tc.text, 9))
		})
	}
}

// What is shown can be copied into a shell.
func TestQuoteIsReadBackByAShell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		argv []string
		want string
	}{
		"plain":         {[]string{"kubectl", "-n", "shop", "--type=merge"}, "kubectl -n shop --type=merge"},
		"JSON":          {[]string{"-p", `{"a":{"b":"c"}}`}, `-p '{"a":{"b":"c"}}'`},
		"a quote":       {[]string{"it's"}, `'it'\''s'`},
		"empty":         {[]string{"", "a"}, `'' a`},
		"for the shell": {[]string{"$HOME", "`x`", `\.`, "a b", "*", "~", "#"}, "'$HOME' '`x`' '\\.' 'a b' '*' '~' '#'"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quoted := narration.Quote(tc.argv)
			assert.Equal(t, tc.want, quoted)
			read, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+quoted).Output()
			require.NoError(t, err)
			assert.Equal(t, strings.Join(tc.argv, "\n")+"\n", string(read))
		})
	}
}

func TestNarration(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	n := narration.New(&out, false, func() time.Time { return clock })
	n.Title("Title")
	clock = clock.Add(2500 * time.Millisecond)
	n.Step("Step")
	n.Say("%d words", 2)
	n.Command([]string{"echo", "a b"})
	n.Output("a b\n\nc\n")
	n.Stderr("Warning: "+strings.Repeat("theirs ", 20)+"\nWarning: "+strings.Repeat("ours ", 30), "ours")
	n.Seen("+1.0 s", "something")
	n.Failure("broken")
	n.Output("")
	want := "Title\n\n1  Step" + strings.Repeat(" ", 98) + "2.5 s\n" +
		"   2 words\n   $ echo 'a b'\n     a b\n\n     c\n" +
		"     Warning: " + strings.TrimSpace(strings.Repeat("theirs ", 13)) + " …\n" +
		"     Warning: " + strings.TrimSpace(strings.Repeat("ours ", 19)) + "\n     " + strings.TrimSpace(strings.Repeat("ours ", 11)) + "\n" +
		"   →    +1.0 s  something\n   broken\n"
	assert.Equal(t, want, out.String())
}

func TestColours(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	narration.New(&out, true, time.Now).Title("Title")
	assert.Equal(t, "\x1b[1mTitle\x1b[0m\n", out.String())
}
