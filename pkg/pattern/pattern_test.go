package pattern_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		text    string
		matches []string
		others  []string
	}{
		"prefix":          {reason: "The usual case.", text: "app-.*", matches: []string{"app-", "app-x"}, others: []string{"app", "my-app-x"}},
		"suffix":          {reason: "Nothing may follow.", text: ".*-db", matches: []string{"a-db"}, others: []string{"a-db2"}},
		"alternatives":    {reason: "The anchors enclose all of them.", text: "a|b", matches: []string{"a", "b"}, others: []string{"ab", "ax", "xb"}},
		"anchored twice":  {reason: "Users write their own anchors, too.", text: "^a.$", matches: []string{"ab"}, others: []string{"a", "abc"}},
		"any case":        {reason: "With (?i), a capital matches a small letter.", text: "(?i)APP", matches: []string{"app"}, others: []string{"ap"}},
		"class":           {reason: "A class with possible characters is possible.", text: "[A-Za]pp", matches: []string{"app"}, others: []string{"pp"}},
		"dot":             {reason: "A dot is a metacharacter, as in Reloader.", text: "a.b", matches: []string{"a.b", "a-b"}, others: []string{"ab"}},
		"never":           {reason: "What need not be there can be impossible.", text: "(?:A_)?a(?:_)*b{0,3}(C|d)", matches: []string{"ad", "abbd"}, others: []string{"a", "ax"}},
		"optional prefix": {reason: "The prefix of a repetition is not one of the names.", text: "a*b", matches: []string{"b", "aab"}, others: []string{"a"}},
		"anything":        {reason: "Nothing is before it.", text: ".*", matches: []string{"", "a"}, others: []string{"a\nb"}},
		"something":       {reason: "At least one character follows.", text: "app-.+", matches: []string{"app-x"}, others: []string{"app-", "app", "app-\n"}},
		"any anchored":    {reason: "The anchors of users enclose the whole.", text: "^app-.*$", matches: []string{"app-", "app-x"}, others: []string{"my-app-x"}},
		"lazy":            {reason: "How much is tried first makes no difference for a whole name.", text: "app-.*?", matches: []string{"app-", "app-x"}, others: []string{"app"}},
		"any case prefix": {reason: "It is no prefix.", text: "(?i)APP-.*", matches: []string{"app-x"}, others: []string{"ap"}},
		"optional rest":   {reason: "One character, or none.", text: "app-.?", matches: []string{"app-", "app-x"}, others: []string{"app-xy"}},
		"two anys":        {reason: "What is between them must be there.", text: "app-.*-db.*", matches: []string{"app--db", "app-x-dbs"}, others: []string{"app-db"}},
		"two suffixes":    {reason: "The last literal is at the end, not where it is first.", text: ".*-db-db", matches: []string{"x-db-db", "-db-db-db"}, others: []string{"-db", "x-db-dbx"}},
		"overlapping":     {reason: "What one literal takes is no part of the next.", text: "a.*aba.*aba", matches: []string{"aabaaba", "axabaxaba"}, others: []string{"aaba", "aababa"}},
		"any and some":    {reason: "Both together are at least one character.", text: "a.*.+.*-b", matches: []string{"ax-b", "a--b"}, others: []string{"a-b"}},
		"some and some":   {reason: "Two characters are not two bytes.", text: "a.+.+b", matches: []string{"axxb"}, others: []string{"axb", "aéb"}},
		"some between":    {reason: "At least one character is between.", text: "a.+b.+", matches: []string{"axbx", "abbb", "axbb"}, others: []string{"abx", "axb", "ab"}},
		"any line":        {reason: "With (?s), a dot is any character.", text: "(?s)a.*", matches: []string{"a", "ab", "a\n"}, others: []string{"b"}},
		"begin of lines":  {reason: "With (?m), anchors are others.", text: "(?m)^a.*$", matches: []string{"a", "ab"}, others: []string{"b", "b\na"}},
		"only anchors":    {reason: "They match nothing that has a name.", text: "^$", matches: []string{""}, others: []string{"a"}},
		"end in front":    {reason: "Nothing can follow the end.", text: "a$.*", matches: []string{"a"}, others: []string{"ab"}},
		"line":            {reason: "Flags change nothing about whole names.", text: "(?m)^a$", matches: []string{"a"}, others: []string{"ab", "a\nb"}},
		"last of a class": {reason: "The bounds of a class are of it.", text: "[z{]x", matches: []string{"zx"}, others: []string{"x"}},
		"first of one":    {reason: "The bounds of a class are of it.", text: "[`a]x", matches: []string{"ax"}, others: []string{"x"}},
		"begin":           {reason: "Nothing that has a name is there.", text: "^", matches: []string{""}, others: []string{"a"}},
		"end":             {reason: "Nothing that has a name is there.", text: "$", matches: []string{""}, others: []string{"a"}},
		"largest":         {reason: "It costs as much as can be.", text: "(?:ab|cd){329}", others: []string{"abcd"}},
		"longest text":    {reason: "It has as many bytes as can be.", text: strings.Repeat("a", 1022) + ".*", matches: []string{strings.Repeat("a", 1022)}, others: []string{"a"}},
		"long":            {reason: "A class over a whole name.", text: "[a-z0-9.-]{1,253}", matches: []string{"a", strings.Repeat("a", 253)}, others: []string{strings.Repeat("a", 254)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pattern.Compile(tc.text)
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.text, p.String())
			whole := regexp.MustCompile("^(?:" + tc.text + ")$")
			for _, text := range slices.Concat(tc.matches, tc.others, []string{"", "\n", "app-\nx", "a", "app-x-db", "\xff"}) {
				assert.Equal(t, whole.MatchString(text), p.Match(text), "%q: as the regular expression", text)
			}
			for _, match := range tc.matches {
				assert.True(t, p.Match(match), "%q: %s", match, tc.reason)
			}
			for _, other := range tc.others {
				assert.False(t, p.Match(other), "%q: %s", other, tc.reason)
			}
		})
	}
}

func TestCompileErrs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		err    string
	}{
		"syntax":       {reason: "The reason is given without the text, which may be long.", text: "a(", err: `the expression "a(" is invalid: missing closing )`},
		"repetition":   {reason: "It is a pattern of a shell.", text: "*", err: `the expression "*" is invalid: missing argument to repetition operator; .* stands for any text`},
		"enclosed":     {reason: "It must be valid by itself, not with our anchors.", text: "a)|(b", err: `the expression "a)|(b" is invalid: unexpected )`},
		"too long":     {reason: "What is compiled is bounded.", text: strings.Repeat("a", 1023) + ".*", err: "is 1025 bytes long: the limit is 1024"},
		"too large":    {reason: "A short text can compile to something large.", text: "[a-z]{500}[a-z]{1,800}[a-z]{800,}", err: "repeats too much"},
		"larger":       {reason: "One repetition less is possible.", text: "(?:ab|cd){330}", err: "repeats too much"},
		"too often":    {reason: "A text compiles again for each time.", text: "(abcdefghijklmnopqrstuvwxyz){80}", err: "repeats too much"},
		"too wide":     {reason: "Each range of a class compiles.", text: "[acegikmoqsuwy02468]{700}", err: "repeats too much"},
		"too optional": {reason: "Any of many parts can be the next.", text: "(.?){480}z", err: "repeats too much"},
		"too many":     {reason: "So it is with alternatives of repetitions.", text: "(a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*)*(a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*)*z", err: "repeats too much"},
		"too nested":   {reason: "RE2's own limit.", text: "((a{100}){100}){100}", err: "invalid repeat count"},
		"capital":      {reason: "Names have none.", text: "App-.*", err: `the expression "App-.*" matches no name that an object can have; a comma separates items`},
		"underscore":   {reason: "Names have none.", text: "app_.*", err: "matches no name"},
		"cut by comma": {reason: "A comma in a repetition ends the item.", text: "a{1", err: "a comma separates items"},
		"rest of it":   {reason: "The rest is an item, too.", text: "3}", err: "matches no name"},
		"class":        {reason: "No character of it is possible.", text: "a[A-Z_]+", err: "matches no name"},
		"repeated":     {reason: "It must be there twice.", text: "a(_){2}", err: "matches no name"},
		"no choice":    {reason: "None of the alternatives is possible.", text: "(A|B)c", err: "matches no name"},
		"white space":  {reason: "Names have none.", text: "a.* b", err: "matches no name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pattern.Compile(tc.text)
			require.ErrorContains(t, err, tc.err, tc.reason)
			assert.Less(t, len(err.Error()), 300)
			assert.Nil(t, p)
		})
	}
}

// A list of expressions that are refused must not take longer to read than one of those that are not.
func TestRefusedExpressionCostsWhatItCompilesTo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"(.?){480}z": 1945, "(?:ab|cd){330}": 0, "App": 0, "(": 0} {
		_, err := pattern.Compile(text)
		require.Error(t, err, text)
		assert.InDelta(t, want, pattern.CostOf(err), 50, text)
	}
	assert.Zero(t, pattern.CostOf(nil))
}

func TestCostGrowsWithRepetition(t *testing.T) {
	t.Parallel()
	one, err := pattern.Compile("[a-z]{1}a")
	require.NoError(t, err)
	many, err := pattern.Compile("[a-z]{500}a")
	require.NoError(t, err)
	assert.Less(t, one.Cost(), 30)
	open, err := pattern.Compile("[ab]{300,}")
	require.NoError(t, err)
	assert.Greater(t, open.Cost(), 600, "it may repeat once more")
	simple, err := pattern.Compile("app-.*")
	require.NoError(t, err)
	same, err := pattern.Compile("^app-.*$")
	require.NoError(t, err)
	assert.Equal(t, 27, simple.Cost(), "a parser is not needed")
	assert.InDelta(t, same.Cost(), simple.Cost(), 5)
	assert.Greater(t, many.Cost(), 500)
}

// To match literals takes no steps that depend on the expression; what is counted of others bounds what a match takes.
func TestStepsBoundTheMatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"app-.*": 0, ".*-config": 0, "^.*-db-.+$": 0, ".*": 0, "app-(a|b)-config": 1, "(app|web)-.*": 3, strings.Repeat("a*", 18) + "b": 38,
	} {
		p, err := pattern.Compile(text)
		require.NoError(t, err)
		assert.Equal(t, want, p.Steps(), text)
	}
}

// What can be meant seriously is far from the bound on the steps of a match.
func TestUsualExpressionsAreCompiled(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[a-z0-9.-]{1,253}", "app-(config|secret)-v[0-9]+", ".*-(dev|test|stage|prod)-.*", "(?i)app-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}",
		".*a.*b.*c.*d.*", "(" + strings.Repeat("x", 250) + "|" + strings.Repeat("y", 250) + "|" + strings.Repeat("z", 250) + ")", "[a-z]([-a-z0-9]*[a-z0-9])?",
	} {
		_, err := pattern.Compile(text)
		require.NoError(t, err, text)
	}
}

func TestIsName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"app-1": true, "My_App": true, "a.b": false, "a*": false, "a{1": false, "^a": false} {
		assert.Equal(t, want, pattern.IsName(text), text)
	}
}

// FuzzCompile: what is accepted matches as the anchored expression does, and has a bounded size.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{"app-.*", "a|b", "(?i)APP", "a{1", "a)|(b", "^a$", `\Qa.b\E`, "(?P<x>a)", "[^a-z]", "(?:|a)", `a\b`, "a*?", ".*-db", "a.*b.+c.*", ".+.*a"} {
		f.Add(text, "app-1")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := pattern.Compile(text)
		if err != nil {
			require.Less(t, len(err.Error()), 400)
			require.True(t, utf8.ValidString(err.Error()), "the error is valid UTF-8, unlike %q", err.Error())
			if whole, compiles := regexp.Compile("^(?:" + text + ")$"); compiles == nil && reference.ValidName(name) == nil && strings.Contains(err.Error(), "matches no name") {
				require.False(t, whole.MatchString(name), "%q does match %q", text, name)
			}
			return
		}
		require.Equal(t, regexp.MustCompile("^(?:"+text+")$").MatchString(name), p.Match(name))
		require.LessOrEqual(t, p.Cost(), 2000)
	})
}
