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
	case shape != nil && shape.Members != nil && first == '{':
		return d.object(shape.Members)
	case shape != nil && shape.Elements != nil && first == '[':
		return d.list(shape.Elements)
	default:
		text, err := d.skip()
		if err != nil {
			return nil, err
		}
		return whole(text)
	}
}

// whole decodes a value of which every part is of interest.
func whole(text []byte) (any, error) {
	if s, ok := simple(text); ok {
		return s, nil
	}
	if texts, ok := flat(text); ok {
		return texts, nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// simple decodes a string without escapes, which nearly all are.
func simple(text []byte) (string, bool) {
	if len(text) < 2 || text[0] != '"' {
		return "", false
	}
	text = text[1 : len(text)-1]
	for _, c := range text {
		if c < ' ' || c == '\\' || c > '~' {
			return "", false
		}
	}
	return string(text), true
}

var errNotFlat = errors.New("a member is not a string")

// flat decodes an object with nothing but strings in it, as labels and annotations are, faster than a general decoder. It is
// false for everything else, malformed texts included.
func flat(text []byte) (map[string]any, bool) {
	d := decoder{text: text}
	texts := map[string]any{}
	err := d.items('{', '}', func() error {
		key, err := d.key()
		if err != nil {
			return err
		}
		member, err := d.skip()
		if err != nil {
			return err
		}
		texts[key], err = unquote(member)
		return err
	})
	return texts, err == nil && d.at == len(text)
}

// unquote decodes a string.
func unquote(text []byte) (string, error) {
	if s, ok := simple(text); ok {
		return s, nil
	}
	if text[0] != '"' {
		return "", errNotFlat
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

func (d *decoder) object(members map[string]*Shape) (any, error) {
	object := map[string]any{}
	err := d.items('{', '}', func() error {
		key, err := d.key()
		if err != nil {
			return err
		}
		shape, wanted := members[key]
		if !wanted {
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
	text, err := d.skip()
	if err != nil {
		return "", err
	}
	if !d.take(':') {
		return "", ErrMalformed
	}
	return unquote(text)
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

// items calls read for what is between two brackets, separated by commas.
func (d *decoder) items(first, last byte, read func() error) error {
	if !d.take(first) {
		return ErrMalformed
	}
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
