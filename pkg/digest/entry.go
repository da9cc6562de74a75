// Package digest computes what stands for configuration in annotations: the Entry of one config object, the config-hash
// of a set of them, and the ring of keys under which Entries are made.
//
// It is one of the pure packages, above reference and below record. Nothing in it reads, waits or logs. What it
// computes is durable: it is stored on workloads and compared with what a later version computes. Golden vectors in
// testdata pin it; a change of one raises the version tag here and the version of the Record text, and lets
// version N read N−1.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
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
	e := k.MAC("pod-reloader entry v1")
	e.Text(string(c.Ref.Kind))
	e.Text(c.Namespace)
	e.Text(c.Ref.Name)
	e.Number(len(c.text) + len(c.data) + len(c.binary))
	e.triples("binaryData", c.binary)
	for _, key := range slices.Sorted(maps.Keys(c.text)) {
		e.Text("data")
		e.Text(key)
		e.Text(c.text[key])
	}
	e.triples("data", c.data)
	return e.Sum()
}
