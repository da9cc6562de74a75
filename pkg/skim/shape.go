// Package skim decodes the parts of a JSON text that are of interest and skips the rest without an allocation.
//
// The API server sends a workload as ten or more kilobytes of JSON, of which this program reads a few hundred bytes. A
// general decoder makes a map of each object in it. Here a Shape names the parts of interest: the result is what a general
// decoder would have made of these parts. What is skipped is not validated.
//
// The package is pure: it imports nothing of this project.
package skim

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
)

// Shape says which parts of a JSON value to decode. nil is all of it. A value of another type than the Shape has is decoded
// as a whole, so that the reader of the result can see that it is of the wrong type.
type Shape struct {
	// Members are those of interest of an object; nil unless the Shape is that of an object.
	Members map[string]*Shape
	// Elements is the Shape of the elements of a list, if the Shape is that of a list.
	Elements *Shape
}

// ErrMalformed says that a text is not JSON.
var ErrMalformed = errors.New("malformed JSON")

// Decode decodes one JSON value, with the types that unstructured objects have: map[string]any, []any, string, bool, int64,
// float64 and nil.
func Decode(text []byte, shape *Shape) (any, error) {
	d := decoder{text: text}
	value, err := d.value(shape)
	if d.peek(); err == nil && d.at < len(d.text) {
		err = ErrMalformed
	}
	if err != nil {
		return nil, fmt.Errorf("decode JSON at byte %d: %w", d.at, err)
	}
	return value, nil
}

// decoder walks through a text.
type decoder struct {
	text []byte
	at   int
	// depth is how many values the next one is inside of.
	depth int
}

// peek returns the next byte that is no white space, 0 at the end.
func (d *decoder) peek() byte {
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take consumes the next byte that is no white space, if it is the wanted one.
func (d *decoder) take(wanted byte) bool {
	if d.peek() != wanted {
		return false
	}
	d.at++
	return true
}

func (d *decoder) value(shape *Shape) (any, error) {
	switch first := d.peek(); {
	case first == '{' && shape != nil && shape.Members != nil:
		return d.object(shape.Members, false)
	case first == '{':
		return d.object(nil, true)
	case first == '[' && shape != nil:
		return d.list(shape.Elements)
	case first == '[':
		return d.list(nil)
	}
	if s, ok := d.plain(); ok {
		return s, nil
	}
	text, err := d.skip()
	if err != nil {
		return nil, err
	}
	return scalar(text)
}

// scalar decodes a value with nothing inside: what is usual by itself, without the reflection of a general decoder.
func scalar(text []byte) (any, error) {
	switch {
	case text[0] == '"':
		return unquote(text)
	case string(text) == "true":
		return true, nil
	case string(text) == "false":
		return false, nil
	case string(text) == "null":
		return nil, nil //nolint:nilnil // null is a value
	}
	if n, ok := small(text); ok {
		return n, nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// small decodes a positive number of up to nine digits.
func small(text []byte) (n int64, ok bool) {
	if len(text) > 9 || text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// plain consumes a string without escapes, which nearly all are. It is false, and consumes nothing, for everything else.
func (d *decoder) plain() (string, bool) {
	if d.peek() != '"' {
		return "", false
	}
	rest := d.text[d.at+1:]
	for n, c := range rest {
		switch {
		case c == '"':
			d.at += n + 2
			return string(rest[:n]), true
		case c < ' ' || c == '\\' || c > '~':
			return "", false
		}
	}
	return "", false
}

// escaped decodes a string with escapes of two characters, as JSON inside of a string has them: what this program keeps in
// annotations is JSON. It does without the reflection of a general decoder. It is false for every other string, as those with \u.
func escaped(text []byte) (string, bool) {
	if len(text) < 2 || text[0] != '"' {
		return "", false
	}
	text = text[1 : len(text)-1]
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' {
			if i++; i == len(text) {
				return "", false
			}
			if c = unescaped(text[i]); c == 0 {
				return "", false
			}
		} else if c < ' ' || c > '~' {
			return "", false
		}
		plain = append(plain, c)
	}
	return string(plain), true
}

// unescaped returns what a character stands for after a backslash; 0 for every other.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return 0
	}
}

// unquote decodes a string.
func unquote(text []byte) (string, error) {
	if s, ok := escaped(text); ok {
		return s, nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

// object decodes the members that are of interest, or all.
func (d *decoder) object(members map[string]*Shape, all bool) (any, error) {
	object := map[string]any{}
	err := d.items('{', '}', func() error {
		key, err := d.key()
		if err != nil {
			return err
		}
		shape, wanted := members[key]
		if !wanted && !all {
			_, err := d.skip()
			return err
		}
		object[key], err = d.value(shape)
		return err
	})
	return object, err
}

// key consumes the key of a member and the colon.
func (d *decoder) key() (string, error) {
	if d.peek() != '"' {
		return "", ErrMalformed
	}
	key, ok := d.plain()
	if !ok {
		text, err := d.skip()
		if err != nil {
			return "", err
		}
		if key, err = unquote(text); err != nil {
			return "", err
		}
	}
	if !d.take(':') {
		return "", ErrMalformed
	}
	return key, nil
}

func (d *decoder) list(shape *Shape) (any, error) {
	list := []any{}
	err := d.items('[', ']', func() error {
		value, err := d.value(shape)
		list = append(list, value)
		return err
	})
	return list, err
}

// deepest is how deep values may be nested, as in encoding/json.
const deepest = 10_000

// items calls read for what is between two brackets, separated by commas.
func (d *decoder) items(first, last byte, read func() error) error {
	if d.depth++; d.depth > deepest || !d.take(first) {
		return ErrMalformed
	}
	defer func() { d.depth-- }()
	if d.take(last) {
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		if d.take(last) {
			return nil
		}
		if !d.take(',') {
			return ErrMalformed
		}
	}
}

// skip consumes one value and returns its text.
func (d *decoder) skip() ([]byte, error) {
	d.peek()
	var e extent
	n, complete := e.scan(d.text[d.at:])
	if !complete && !e.scalar {
		d.at = len(d.text)
		return nil, ErrMalformed
	}
	text := d.text[d.at : d.at+n]
	d.at += n
	if len(text) == 0 {
		return nil, ErrMalformed
	}
	return text, nil
}
