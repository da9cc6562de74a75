package wire

import (
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List is a PartialObjectMetadataList, reduced.
type List struct {
	ResourceVersion, Continue string
	Items                     []Meta
}

// ReadList reads a PartialObjectMetadataList to its end, one item at a time: what it takes is the memory of its largest
// item, however long the list is.
func ReadList(r io.Reader, keep Keep) (List, error) {
	l := listReader{stream: stream{r: r, left: unbounded}, keep: keep}
	if err := l.read(); err != nil {
		return List{}, fmt.Errorf("read a list of metadata: %w", err)
	}
	// The connection can be used again only when its end has been seen.
	_, err := io.Copy(io.Discard, r)
	return l.list, err
}

type listReader struct {
	stream

	keep   Keep
	buffer Buffer
	list   List
}

func (l *listReader) read() error {
	prefix, err := l.buffer.Fill(l.r, int64(len(magic)))
	if err != nil {
		return err
	}
	if [len(magic)]byte(prefix) != magic {
		return errors.New("the response is not protobuf, as was asked for")
	}
	found := false
	err = l.fields(func(number int, length int64) error {
		if number != 2 { // all of Unknown but raw
			return l.step(length)
		}
		found = true
		l.left = length
		if err := l.fields(l.field); err != nil {
			return err
		}
		l.left = unbounded
		return nil
	})
	if err == nil && !found {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field reads one field of the list itself.
func (l *listReader) field(number int, length int64) error {
	if number != 1 && number != 2 {
		return l.step(length)
	}
	message, err := l.take(&l.buffer, length)
	if err != nil {
		return err
	}
	defer l.buffer.Clear()
	if number == 2 {
		meta, err := MetaOf(message, l.keep)
		l.list.Items = append(l.list.Items, meta)
		return err
	}
	var meta metav1.ListMeta
	if err := meta.Unmarshal(message); err != nil {
		return err
	}
	l.list.ResourceVersion, l.list.Continue = meta.ResourceVersion, meta.Continue
	return nil
}

// unbounded is the length of the outermost message, which has none but that of the response.
const unbounded = -1

// stream reads the fields of a message that is not in memory as a whole.
type stream struct {
	r    io.Reader
	left int64 // bytes of the current message, or unbounded
}

// fields calls visit with the number and length of every length-delimited field; visit must consume the field. Only an
// unbounded message may end with the response: in any other the rest is missing, however long it was said to be.
func (s *stream) fields(visit func(number int, length int64) error) error {
	for s.left != 0 {
		tag, err := s.varint()
		if errors.Is(err, io.EOF) && s.left == unbounded {
			return nil
		}
		if err != nil {
			return unexpectedEOF(err)
		}
		number, kind := protowire.DecodeTag(tag)
		if kind != protowire.BytesType {
			return errTruncated
		}
		length, err := s.varint()
		if err != nil {
			return unexpectedEOF(err)
		}
		if length > math.MaxInt64 {
			return errTruncated // consume refuses what is longer than the rest of its message
		}
		if err := visit(int(number), int64(length)); err != nil {
			return err
		}
	}
	return nil
}

// varint reads one number. io.EOF means that there is none any more.
func (s *stream) varint() (uint64, error) {
	var one [1]byte
	var value uint64
	for shift := 0; shift < 64; shift += 7 {
		if _, err := io.ReadFull(s.r, one[:]); err != nil {
			if shift > 0 {
				err = unexpectedEOF(err)
			}
			return 0, err
		}
		if err := s.consume(1); err != nil {
			return 0, err
		}
		value |= uint64(one[0]&0x7f) << shift
		if one[0] < 0x80 {
			return value, nil
		}
	}
	return 0, errTruncated
}

// take reads the bytes of a field.
func (s *stream) take(buffer *Buffer, length int64) ([]byte, error) {
	if err := s.consume(length); err != nil {
		return nil, err
	}
	return buffer.Fill(s.r, length)
}

// step passes over the bytes of a field.
func (s *stream) step(length int64) error {
	if err := s.consume(length); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, s.r, length)
	return unexpectedEOF(err)
}

// consume counts bytes of the current message.
func (s *stream) consume(n int64) error {
	if s.left == unbounded {
		return nil
	}
	if n > s.left {
		return errTruncated
	}
	s.left -= n
	return nil
}
