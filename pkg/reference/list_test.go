package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestListCountsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	a, b, c := reference.Ref{Kind: reference.ConfigMap, Name: "a"}, reference.Ref{Kind: reference.ConfigMap, Name: "b"}, reference.Ref{Kind: reference.Secret, Name: "c"}
	assert.Empty(t, reference.List[reference.Ref](nil, 2))
	assert.Equal(t, "configmap/a", reference.List([]reference.Ref{a}, 2))
	assert.Equal(t, "configmap/a, configmap/b", reference.List([]reference.Ref{a, b}, 2))
	assert.Equal(t, "configmap/a, configmap/b and 1 more", reference.List([]reference.Ref{a, b, c}, 2))
}

func TestClausesCountWhatTheyDoNotName(t *testing.T) {
	t.Parallel()
	quoted := func(s string) string { return "(" + s + ")" }
	for want, items := range map[string][]string{
		"": nil, "(a)": {"a"}, "(a); (b)": {"a", "b"}, "(a); (b); and 2 more": {"a", "b", "c", "d"},
	} {
		assert.Equal(t, want, reference.Clauses(items, 2, quoted))
	}
}

func TestCutEndsAtAWholeCharacter(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "abé", reference.Cut("abé", 4))
	assert.Equal(t, "ab…", reference.Cut("abéd", 3), "é has two bytes")
	assert.Equal(t, "abé…", reference.Cut("abéde", 4))
}

func TestCountAgreesWithItsNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]string{0: {"0 items", "0 items are"}, 1: {"1 item", "1 item is"}, 2: {"2 items", "2 items are"}} {
		assert.Equal(t, want, [2]string{reference.Count(n, "item"), reference.CountAre(n, "item")})
	}
}

func TestPrintableTextControlsNoTerminal(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a \u00e9 \u2192 b", reference.Printable("a \u00e9 \u2192 b"))
	assert.Equal(t, "a\ufffd[2Jb\ufffd\ufffdc", reference.Printable("a\x1b[2Jb\r\nc"))
	assert.Equal(t, "a; b\ufffd; c", reference.OneLine("a\nb\r\nc"))
}
