package digest

import (
	"crypto/hmac"
	"crypto/sha256"
)

// MAC computes HMAC-SHA-256 under a digest key over values of another package's own: each is preceded by its length as
// 8 bytes, so that no two sequences of values of the same types have the same encoding. It is for one goroutine.
type MAC struct{ encoder *encoder }

// MAC begins with a tag, which names what is computed, and its version. It panics for the zero Key.
func (k Key) MAC(tag string) MAC {
	m := MAC{encoder: newEncoder(hmac.New(sha256.New, k.secret()))}
	m.Text(tag)
	return m
}

// Text adds a text.
func (m MAC) Text(s string) { m.encoder.text(s) }

// Bytes adds bytes, in the same encoding as the text of them.
func (m MAC) Bytes(b []byte) { m.encoder.bytes(b) }

// Number adds a number that is not negative, such as a count of values that follow.
func (m MAC) Number(n int) { m.encoder.number(n) }

// Sum returns the digest of what was added. More can be added afterwards.
func (m MAC) Sum() Entry {
	var sum Entry
	m.encoder.hash.Sum(sum[:0])
	return sum
}
