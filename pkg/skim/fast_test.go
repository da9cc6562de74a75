package skim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is left to the general decoder is right as well, and costs more.
func TestWhatIsDecodedWithoutTheGeneralDecoder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"1": 1, "9": 9, "10": 10, "123456789": 123456789} {
		n, ok := small([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, n, text)
	}
	for _, text := range []string{"0", "01", "1234567890", "-1", "1.5", "1e3", "1/", "1:"} {
		_, ok := small([]byte(text))
		assert.False(t, ok, text)
	}
	for _, text := range []string{"", "a", " ~", "}]"} {
		d := decoder{text: []byte(`"` + text + `",`)}
		got, ok := d.plain()
		assert.True(t, ok, text)
		assert.Equal(t, text, got)
		assert.Equal(t, len(text)+2, d.at)
	}
	for _, text := range []string{"\x1f\"", "\x7f\"", `\n"`, "ä\"", "without an end"} {
		d := decoder{text: []byte(`"` + text)}
		_, ok := d.plain()
		assert.False(t, ok, text)
		assert.Zero(t, d.at)
	}
	for text, want := range map[string]string{`" ~"`: " ~", `"\n~ "`: "\n~ ", `""`: ""} {
		got, ok := escaped([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"\"\x1f\"", "\"\x7f\"", `"ä"`, `"\u0020"`, `"a\"`} {
		_, ok := escaped([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestDepthIsThatOfValuesInEachOther(t *testing.T) {
	t.Parallel()
	value, err := Decode([]byte("["+strings.Repeat("[],", deepest)+"[]]"), nil)
	require.NoError(t, err)
	assert.Len(t, value, deepest+1)
}

func TestReaderKeepsNoLargeBuffer(t *testing.T) {
	t.Parallel()
	for _, length := range []int{retained, retained + 1} {
		r := NewReader(strings.NewReader("1 2"))
		r.buffer = make([]byte, 0, length)
		_, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, length == retained, cap(r.buffer) == length, "of %d bytes", length)
	}
}
