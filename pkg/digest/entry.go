// Package digest computes what stands for configuration in annotations: the Entry of one config object, the config-hash
// of a set of them, and the ring of keys under which Entries are made.
//
// It is one of the pure packages, above reference and below record. Nothing in it reads, waits or logs. What it
// computes is durable: it is stored on workloads and compared with what a later version computes. Golden vectors in
// testdata pin it; a change of one raises the version tag here and the version of the Record text, and lets
// version N read N−1.
package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Entry is the digest of one config object's content under one key.
type Entry [sha256.Size]byte

// Short returns the first 16 hex digits, which are what a Record keeps.
func (e Entry) Short() string {
	return hex.EncodeToString(e[:8])
}

// Content is what counts of a config object: where it lives, what it is called and its payload. Labels, annotations,
// resourceVersion, UID, type and immutable do not count. It refers to the object's own maps and is as secret as they
// are: compute the Entry and drop it.
type Content struct {
	Ref       reference.Ref
	Namespace string

	text   map[string]string // a ConfigMap's data, or the versions of the objects of a SecretProviderClass
	data   map[string][]byte // a Secret's data
	binary map[string][]byte // a ConfigMap's binaryData
}

// OfConfigMap returns the content of a ConfigMap, without copying it.
func OfConfigMap(object *corev1.ConfigMap) Content {
	return Content{
		Ref:       reference.Ref{Kind: reference.ConfigMap, Name: object.Name},
		Namespace: object.Namespace,
		text:      object.Data,
		binary:    object.BinaryData,
	}
}

// OfSecret returns the content of a Secret, without copying it. stringData does not count: the API server moves it into
// data and never returns it.
func OfSecret(object *corev1.Secret) Content {
	return Content{
		Ref:       reference.Ref{Kind: reference.Secret, Name: object.Name},
		Namespace: object.Namespace,
		data:      object.Data,
	}
}

// OfObjects returns the content of a SecretProviderClass, which is the versions of its objects by their ids, without copying
// them. The versions name secrets, they are none.
func OfObjects(ref reference.Ref, namespace string, versions map[string]string) Content {
	return Content{Ref: ref, Namespace: namespace, text: versions}
}

// String names the object, never its payload.
func (c Content) String() string {
	return "content of " + c.Ref.String() + " in " + c.Namespace
}

// GoString is String: %#v shows no payload either.
func (c Content) GoString() string {
	return c.String()
}

// Entry computes HMAC-SHA-256 under the key over: a version tag, kind, namespace, name, the number of (field, key,
// value) triples, and the triples sorted by field and key. Every text is preceded by its length as 8 bytes, so that no
// two contents have the same encoding. The payload streams through a small buffer. It panics for the zero Key.
func (c Content) Entry(k Key) Entry {
	e := newEncoder(hmac.New(sha256.New, k.secret()))
	e.text("pod-reloader entry v1")
	e.text(string(c.Ref.Kind))
	e.text(c.Namespace)
	e.text(c.Ref.Name)
	e.number(len(c.text) + len(c.data) + len(c.binary))
	e.triples("binaryData", c.binary)
	for _, key := range sortedKeys(c.text) {
		e.text("data")
		e.text(key)
		e.text(c.text[key])
	}
	e.triples("data", c.data)
	var entry Entry
	e.hash.Sum(entry[:0])
	return entry
}

// encoder writes length-prefixed values into a hash.
type encoder struct {
	hash   hash.Hash
	buffer []byte // takes strings in pieces, which a hash cannot take as they are
}

func newEncoder(h hash.Hash) *encoder {
	return &encoder{hash: h, buffer: make([]byte, 1024)}
}

// number writes a count or a length as 8 bytes, the most significant first.
func (e *encoder) number(n int) {
	binary.BigEndian.PutUint64(e.buffer[:8], uint64(n))
	e.hash.Write(e.buffer[:8])
}

func (e *encoder) bytes(b []byte) {
	e.number(len(b))
	e.hash.Write(b)
}

func (e *encoder) text(s string) {
	e.number(len(s))
	e.plain(s)
}

// plain writes a text without its length.
func (e *encoder) plain(s string) {
	for len(s) > 0 {
		n := copy(e.buffer, s)
		e.hash.Write(e.buffer[:n])
		s = s[n:]
	}
}

func (e *encoder) triples(field string, values map[string][]byte) {
	for _, key := range sortedKeys(values) {
		e.text(field)
		e.text(key)
		e.bytes(values[key])
	}
}

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
