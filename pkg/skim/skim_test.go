package skim_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

// name is the Shape of an object of which its name is of interest, and the names in its list.
func name() *skim.Shape {
	inner := &skim.Shape{Members: map[string]*skim.Shape{"name": nil}}
	return &skim.Shape{Members: map[string]*skim.Shape{"name": nil, "meta": inner, "list": {Elements: inner}}}
}

func TestDecodeTakesWhatIsOfInterest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{"name":"a","more":{"name":"}]\""},"status":[1,{"x":2}]}`: map[string]any{"name": "a"},
		`{"meta":{"name":1,"x":2}}`:                                map[string]any{"meta": map[string]any{"name": int64(1)}},
		`{"list":[{"name":"a","x":[]},{"x":1},{}]}`: map[string]any{"list": []any{
			map[string]any{"name": "a"}, map[string]any{}, map[string]any{},
		}},
		`{"name":{"all":["of","it"],"f":1.5}}`: map[string]any{"name": map[string]any{"all": []any{"of", "it"}, "f": 1.5}},
		`{"meta":["another type"],"list":{"a":1}}`: map[string]any{
			"meta": []any{"another type"}, "list": map[string]any{"a": int64(1)},
		},
		`{"meta":null,"list":true}`:                      map[string]any{"meta": nil, "list": true},
		`{"na\u006de":"\u00e4\n\"","name2":"x"}`:         map[string]any{"name": "ä\n\""},
		`{"name":"{\"a\":\"b\\\\c\"}\/\b\f\n\r\t"}`:      map[string]any{"name": `{"a":"b\\c"}/` + "\b\f\n\r\t"},
		`{"name":"ä"}`:                                   map[string]any{"name": "ä"},
		" {\n\t\"name\" : \"a\" , \"x\" : -1.5e3 }\r\n ": map[string]any{"name": "a"},
		`{}`:        map[string]any{},
		`[{"a":1}]`: []any{map[string]any{"a": int64(1)}},
		`"text"`:    "text",
		`17`:        int64(17),
	} {
		value, err := skim.Decode([]byte(text), name())
		require.NoError(t, err, text)
		assert.Equal(t, want, value, text)
	}
}

func TestDecodeRefusesMalformedTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `{`, `{"name"`, `{"name":`, `{"name":}`, `{"name":"a"`, `{"name":"a",}`, `{"name":"a"} x`, `{"name" "a"}`, `{name:"a"}`,
		`{"list":[{"name":"a"}`, `{"list":[{"name":"a"} {}]}`, `{"name":"a\`, `{"name":"` + "\n" + `"}`, `{"name":tru}`, `{"x":[1,2}`, `]`, `}`,
		`{"name":"a\x"}`, `{"meta":{"name":"a\q\n"}}`, `{"name":"a\` + "\x00" + `"}`,
	} {
		_, err := skim.Decode([]byte(text), name())
		require.Error(t, err, text)
	}
}

func FuzzDecodeAgreesWithTheGeneralDecoder(f *testing.F) {
	f.Add([]byte(`{"name":"a","meta":{"name":[1,2.5,"\u00e4"]},"list":[{"name":null}]}`))
	f.Add([]byte(`{"name":"\ud800 \\"}`))
	f.Add([]byte(`{"name":"a","b\u0020":"\u00e4\"","name":"b","":" "}`))
	f.Add([]byte(`{"name":"a","b":{"c":"d"}}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"name":{"a":[{"b":{"c":[]}},null,true,false,0,12,-3,1e3,0.5,1234567890123],"d":{}}}`))
	f.Add([]byte(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)))
	f.Add([]byte(strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want any
		valid := json.Unmarshal(text, &want)
		whole, err := skim.Decode(text, nil)
		require.Equal(t, valid == nil, err == nil, "%v, %v", valid, err)
		if valid != nil {
			_, _ = skim.Decode(text, name()) // must return
			return
		}
		assert.Equal(t, want, whole)
		part, err := skim.Decode(text, name())
		require.NoError(t, err)
		assert.Equal(t, reduced(want, name()), part)
	})
}

// reduced leaves what a Shape has.
func reduced(value any, shape *skim.Shape) any {
	switch v := value.(type) {
	case map[string]any:
		if shape == nil || shape.Members == nil {
			return v
		}
		small := map[string]any{}
		for key, inner := range shape.Members {
			if member, ok := v[key]; ok {
				small[key] = reduced(member, inner)
			}
		}
		return small
	case []any:
		if shape == nil || shape.Elements == nil {
			return v
		}
		small := []any{}
		for _, element := range v {
			small = append(small, reduced(element, shape.Elements))
		}
		return small
	default:
		return v
	}
}

func readers(text string) map[string]io.Reader {
	return map[string]io.Reader{
		"at once":      strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
	}
}

func TestNextReturnsOneValueAfterAnother(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat(`\\\"x`, 50_000) + `"`
	values := []string{`{"a":"}\"{"}`, `["",{"a":"\""}]`, `[1,[2]]`, long, `17`, `"x"`, `null`, `{"b":` + long + `}`, `-1`}
	for how, stream := range readers(strings.Join(values, "\n ")) {
		r := skim.NewReader(stream)
		for _, want := range values {
			text, err := r.Next()
			require.NoError(t, err, how)
			assert.Equal(t, want, string(text), how)
		}
		_, err := r.Next()
		require.ErrorIs(t, err, io.EOF, how)
	}
}

func TestNextSaysWhereAStreamEndsTooEarly(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":1`, `[1,2`, `"x`, `"x\`, `{"a":"b`} {
		_, err := skim.NewReader(strings.NewReader(text)).Next()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, text)
	}
	broken := errors.New("connection reset")
	_, err := skim.NewReader(io.MultiReader(strings.NewReader(`{"a"`), iotest.ErrReader(broken))).Next()
	require.ErrorIs(t, err, broken)
}

// endless is the beginning of a string that never ends.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if !e.begun {
		e.begun, p[0] = true, '"'
	}
	return len(p), nil
}

func TestNextRefusesAnEndlessValue(t *testing.T) {
	t.Parallel()
	_, err := skim.NewReader(&endless{}).Next()
	require.ErrorContains(t, err, "at most")
}

func TestNextReturnsValuesUpToTheLimit(t *testing.T) {
	t.Parallel()
	for length, fits := range map[int]bool{skim.Largest: true, skim.Largest + 1: false} {
		_, err := skim.NewReader(strings.NewReader(`"` + strings.Repeat("a", length-2) + `"`)).Next()
		assert.Equal(t, fits, err == nil, "%d bytes: %v", length, err)
	}
}

func TestDecodeReadsEachBackslash(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`"\\\\"`: `\\`, `"\nn"`: "\nn", `"a\\"`: `a\`} {
		got, err := skim.Decode([]byte(`{"name": `+text+`}`), name())
		require.NoError(t, err, text)
		assert.Equal(t, map[string]any{"name": want}, got, text)
	}
}

// listing reads a list as the API server sends it.
func listing(stream io.Reader) (version string, items []string, err error) {
	var metadata struct{ ResourceVersion string }
	err = skim.ReadList(stream, &metadata, func(text []byte) error {
		items = append(items, string(text))
		return nil
	})
	return metadata.ResourceVersion, items, err
}

func TestObjectAndList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"kind":"DeploymentList","metadata":{"resourceVersion":"5"},"items":[{"a":1},{"b":[2]}]}`: {`{"a":1}`, `{"b":[2]}`},
		"{ \"metadata\" : {\"resourceVersion\":\"5\"} ,\n \"items\" : [ ] }":                       nil,
		`{"items":null,"metadata":{"resourceVersion":"5"}}`:                                        nil,
	} {
		for how, stream := range readers(text) {
			version, items, err := listing(stream)
			require.NoError(t, err, how)
			assert.Equal(t, want, items, how)
			assert.Equal(t, "5", version, how)
		}
	}
}

// A connection is used again only if its body was read to the end.
func TestListIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	tail := strings.NewReader("\n")
	_, _, err := listing(io.MultiReader(strings.NewReader(`{"metadata":{},"items":[]}`), tail))
	require.NoError(t, err)
	assert.Zero(t, tail.Len(), "bytes of the body that were not read")
}

// Where a body ends early at the end of an item, what is missing must not count as deleted.
func TestObjectMustBeClosed(t *testing.T) {
	t.Parallel()
	const text = `{"metadata":{},"items":[{"a":1},{"b":2}]}`
	for end := range len(text) - 1 {
		_, _, err := listing(strings.NewReader(text[:end]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, text[:end])
	}
	for _, malformed := range []string{`[]`, `{"items":{}}`, `{"items":[{} {}]}`, `{"items" []}`, `{"a":1 "b":2}`} {
		_, _, err := listing(strings.NewReader(malformed))
		require.ErrorIs(t, err, skim.ErrMalformed, malformed)
	}
	stop := fmt.Errorf("stop")
	require.ErrorIs(t, skim.NewReader(strings.NewReader(text)).Object(func(string) error { return stop }), stop)
}
