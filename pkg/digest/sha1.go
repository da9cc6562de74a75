package digest

import (
	"crypto/sha1" //nolint:gosec // the digest that Reloader writes; nothing is decided by it
	"encoding/base64"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// SHA1 returns what Stakater's Reloader computes of the content, in hex: SHA-1 over key=value of each key, sorted and
// joined by semicolons. A ConfigMap's binaryData is in base64, a Secret's data is not; the pairs of a SecretProviderClass
// are those of ids and versions, and its name. Other contents can have the same, and it is not keyed: nothing is decided by
// it. The payload streams through, as in Entry.
func (c Content) SHA1() string {
	e := newEncoder(sha1.New()) //nolint:gosec // see above
	// A key has no "=", so that the pairs have the order of their keys with it.
	write := make(map[string]func(), len(c.text)+len(c.data)+len(c.binary))
	for key, value := range c.text {
		write[key+"="] = func() { e.plain(value) }
	}
	for key, value := range c.data {
		write[key+"="] = func() { e.hash.Write(value) }
	}
	for key, value := range c.binary {
		write[key+"="] = func() { writeBase64(e.hash, value) }
	}
	if c.Ref.Kind == reference.SecretProviderClass {
		write["SecretProviderClassName="] = func() { e.plain(c.Ref.Name) }
	}
	for i, key := range slices.Sorted(maps.Keys(write)) {
		if i > 0 {
			e.plain(";")
		}
		e.plain(key)
		write[key]()
	}
	return hex.EncodeToString(e.hash.Sum(nil))
}

func writeBase64(w io.Writer, value []byte) {
	encoder := base64.NewEncoder(base64.StdEncoding, w)
	_, _ = encoder.Write(value) // a hash never fails
	_ = encoder.Close()
}
