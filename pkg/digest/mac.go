package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
)

// MAC begins an HMAC-SHA-256 under a digest key with a tag, which names what is computed, and its version. It panics for the zero Key.
func (k Key) MAC(tag string) *Encoder {
	e := newEncoder(hmac.New(sha256.New, k.secret()))
	e.Text(tag)
	return e
}

// Encoder writes values into a hash: each is preceded by its length as 8 bytes, so that no two sequences of values of the same
// types have the same encoding. It is for one goroutine.
type Encoder struct {
	hash   hash.Hash
	buffer []byte // takes strings in pieces, which a hash cannot take as they are
}

func newEncoder(h hash.Hash) *Encoder {
	return &Encoder{hash: h, buffer: make([]byte, 1024)}
}

// Number adds a number that is not negative, such as a count of values that follow: as 8 bytes, the most significant first.
func (e *Encoder) Number(n int) {
	binary.BigEndian.PutUint64(e.buffer[:8], uint64(n))
	e.hash.Write(e.buffer[:8])
}

// Bytes adds bytes, in the same encoding as the text of them.
func (e *Encoder) Bytes(b []byte) {
	e.Number(len(b))
	e.hash.Write(b)
}

// Text adds a text.
func (e *Encoder) Text(s string) {
	e.Number(len(s))
	e.plain(s)
}

// plain writes a text without its length.
func (e *Encoder) plain(s string) {
	for len(s) > 0 {
		n := copy(e.buffer, s)
		e.hash.Write(e.buffer[:n])
		s = s[n:]
	}
}

func (e *Encoder) triples(field string, values map[string][]byte) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		e.Text(field)
		e.Text(key)
		e.Bytes(values[key])
	}
}

// Sum returns the digest of what was added to a MAC. More can be added afterwards.
func (e *Encoder) Sum() (sum Entry) {
	e.hash.Sum(sum[:0])
	return sum
}
