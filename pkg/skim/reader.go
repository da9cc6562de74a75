package skim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Largest is the largest value that a Reader returns, in bytes; an object in etcd has 1.5 MiB by default.
const Largest = 16 << 20

// retained is the largest buffer that is kept between two values, in bytes.
const retained = 256 << 10

// Reader reads JSON values one at a time from a stream, however long that is: what it takes is the memory of the largest
// value.
type Reader struct {
	r      *bufio.Reader
	buffer []byte
}

// NewReader returns a Reader of a stream.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10)}
}

// Next returns the text of the next value; it is valid until the next call. io.EOF says that there is none.
func (r *Reader) Next() ([]byte, error) {
	if _, err := r.peek(); err != nil {
		return nil, err
	}
	return r.value()
}

// Object reads an object member by member: member is called with each key, and reads the value by Next or List.
func (r *Reader) Object(member func(key string) error) error {
	return r.items('{', '}', func() error {
		text, err := r.value()
		if err != nil {
			return err
		}
		d := decoder{text: append(text, ':')}
		key, err := d.key()
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// List reads a list element by element. null is an empty list. The text is valid during the call.
func (r *Reader) List(element func(text []byte) error) error {
	first, err := r.peek()
	if err != nil {
		return unexpectedEOF(err)
	}
	if first == 'n' {
		_, err := r.value()
		return err
	}
	return r.items('[', ']', func() error {
		text, err := r.value()
		if err != nil {
			return err
		}
		return element(text)
	})
}

// ReadList reads a list of the API server to its end, item by item: item is called with each, the metadata is decoded into metadata.
func ReadList(from io.Reader, metadata any, item func(text []byte) error) error {
	r, found := NewReader(from), false
	err := r.Object(func(key string) error {
		if key == "items" {
			found = true
			return r.List(item)
		}
		text, err := r.Next()
		if err != nil || key != "metadata" {
			return err
		}
		return json.Unmarshal(text, metadata)
	})
	if err == nil && !found {
		err = errors.New("the response is no list") // but the page of a proxy, for example: it does not say that there are no objects
	}
	if err != nil {
		return err
	}
	// The connection can be used again only when its end has been seen.
	_, err = io.Copy(io.Discard, from)
	return err
}

// items calls read for what is between two brackets, separated by commas.
func (r *Reader) items(first, last byte, read func() error) error {
	if err := r.expect(first); err != nil {
		return err
	}
	for separator := first; ; separator = ',' {
		c, err := r.peek()
		if err != nil {
			return unexpectedEOF(err)
		}
		if c == last {
			_, err = r.r.Discard(1)
			return err
		}
		if separator == ',' {
			if err := r.expect(','); err != nil {
				return err
			}
		}
		if err := read(); err != nil {
			return unexpectedEOF(err)
		}
	}
}

// expect consumes a certain character.
func (r *Reader) expect(wanted byte) error {
	c, err := r.peek()
	if err != nil {
		return unexpectedEOF(err)
	}
	if c != wanted {
		return fmt.Errorf("%w: %q where %q belongs", ErrMalformed, c, wanted)
	}
	_, err = r.r.Discard(1)
	return err
}

// peek returns the next byte that is no white space.
func (r *Reader) peek() (byte, error) {
	for {
		c, err := r.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c, r.r.UnreadByte()
		}
	}
}

// value reads the text of a value.
func (r *Reader) value() ([]byte, error) {
	if _, err := r.peek(); err != nil {
		return nil, unexpectedEOF(err)
	}
	if cap(r.buffer) > retained {
		r.buffer = nil
	}
	r.buffer = r.buffer[:0]
	var e extent
	for {
		if _, err := r.r.Peek(1); err != nil {
			if e.scalar && errors.Is(err, io.EOF) {
				return r.buffer, nil
			}
			return nil, unexpectedEOF(err)
		}
		piece, err := r.r.Peek(r.r.Buffered())
		if err != nil {
			return nil, unexpectedEOF(err)
		}
		n, complete := e.scan(piece)
		if len(r.buffer)+n > Largest {
			return nil, fmt.Errorf("a value of more than %d bytes: at most %d are read", Largest, Largest)
		}
		r.buffer = append(r.buffer, piece[:n]...)
		if _, err := r.r.Discard(n); err != nil {
			return nil, err
		}
		if complete {
			return r.buffer, nil
		}
	}
}

// unexpectedEOF makes the end of a stream inside a value an error of its own.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
