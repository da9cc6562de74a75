package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// largest is the largest message that is read, in bytes; an object in etcd has 1.5 MiB by default.
	largest = 16 << 20
	// small is how much of a response is read at any time; most config objects have less.
	small = 64 << 10
	// retained is the largest buffer that is kept between two messages, in bytes.
	retained = 32 << 10
)

// Buffer receives one message after another. The caller of Fill clears it as soon as the message is decoded.
type Buffer struct {
	bytes []byte
}

// Fill reads a message of so many bytes, which stays valid until Clear.
func (b *Buffer) Fill(r io.Reader, length int64) ([]byte, error) {
	if length < 0 || length > largest {
		return nil, fmt.Errorf("a message of %d bytes: at most %d are read", length, largest)
	}
	n := int(length)
	if n > cap(b.bytes) {
		b.bytes = make([]byte, max(n, 1024))
	}
	b.bytes = b.bytes[:cap(b.bytes)]
	if _, err := io.ReadFull(r, b.bytes[:n]); err != nil {
		return nil, unexpectedEOF(err)
	}
	return b.bytes[:n], nil
}

// Clear overwrites what was received, and gives up a buffer that one large message has made large.
func (b *Buffer) Clear() {
	clear(b.bytes[:cap(b.bytes)])
	if cap(b.bytes) > retained {
		b.bytes = nil
	}
}

// ReadAll reads a whole response into the buffer, and leaves no copy behind where it has to grow. It calls admit before it
// reads on where the response turns out to be a large one; an error of that ends it.
func (b *Buffer) ReadAll(r io.Reader, admit func() error) ([]byte, error) {
	if b.bytes == nil {
		b.bytes = make([]byte, 8<<10)
	}
	b.bytes = b.bytes[:cap(b.bytes)]
	n := 0
	for {
		if n == len(b.bytes) {
			if n >= largest {
				return nil, fmt.Errorf("a response of more than %d bytes", largest)
			}
			if n == small {
				if err := admit(); err != nil {
					return nil, err
				}
			}
			grown := make([]byte, 2*n)
			copy(grown, b.bytes)
			clear(b.bytes)
			b.bytes = grown
		}
		read, err := r.Read(b.bytes[n:])
		n += read
		if errors.Is(err, io.EOF) {
			return b.bytes[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// unexpectedEOF makes the end of a stream in the middle of a message an error of its own.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Event is one event of a watch. An event of type watch.Error has a Status; all others have the metadata of an object.
type Event struct {
	Type   watch.EventType
	Meta   Meta
	Status *metav1.Status
}

// ReadEvent reads the next event of a watch: four bytes with the length of a WatchEvent, and the WatchEvent. io.EOF
// means that the server has ended the watch. Nothing of what was read remains in the buffer.
func ReadEvent(r io.Reader, buffer *Buffer, keep Keep) (Event, error) {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Event{}, err
	}
	defer buffer.Clear()
	message, err := buffer.Fill(r, int64(binary.BigEndian.Uint32(header[:])))
	if err != nil {
		return Event{}, err
	}
	var kind string
	var object []byte
	err = fields(message, func(number int, value []byte) error {
		switch number {
		case 1: // WatchEvent.type
			kind = string(value)
		case 2: // WatchEvent.object, a RawExtension
			return fields(value, func(number int, value []byte) error {
				if number == 1 {
					object = value
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return Event{}, fmt.Errorf("read a watch event: %w", err)
	}
	return event(watch.EventType(kind), object, keep)
}

func event(kind watch.EventType, object []byte, keep Keep) (Event, error) {
	_, message, err := Object(object)
	if err != nil {
		return Event{}, err
	}
	if kind == watch.Error {
		status := &metav1.Status{}
		if err := status.Unmarshal(message); err != nil {
			return Event{}, fmt.Errorf("read the status that ends a watch: %w", err)
		}
		return Event{Type: kind, Status: status}, nil
	}
	meta, err := MetaOf(message, keep)
	return Event{Type: kind, Meta: meta}, err
}
