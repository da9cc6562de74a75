package digest

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// KeyID names a digest key without revealing it: 8 lower-case hex digits, derived from the key.
type KeyID string

// keyIDSize is the length of a KeyID in bytes.
const keyIDSize = 8

// keySize is the least length of a digest key, and the length of those that NewKey makes, in bytes.
const keySize = 32

// Key is a digest key. It never shows its secret, whatever way it is printed. The zero value is no key: nothing can be
// computed under it.
type Key struct {
	ID KeyID
	// secret is behind a function because fmt does not ask the unexported fields of another struct how they
	// want to be printed, and follows pointers under some verbs. A function is opaque to all that reflects.
	secret func() []byte
}

// String names the key by its ID.
func (k Key) String() string {
	return "digest key " + string(k.ID)
}

// GoString is String: %#v shows no secret either.
func (k Key) GoString() string {
	return k.String()
}

// Format is String under every verb.
func (k Key) Format(f fmt.State, _ rune) {
	// fmt reports a failed write itself: there is nothing to return it to here.
	_, _ = io.WriteString(f, k.String())
}

// newKey makes a Key of the given bytes.
func newKey(secret []byte) Key {
	h := sha256.New()
	h.Write([]byte("pod-reloader key id"))
	h.Write(secret)
	secret = slices.Clone(secret)
	return Key{ID: KeyID(hex.EncodeToString(h.Sum(nil))[:keyIDSize]), secret: func() []byte { return secret }}
}

func (k Key) equal(o Key) bool {
	return k.ID == o.ID && subtle.ConstantTimeCompare(k.secret(), o.secret()) == 1
}

// Ring holds the digest keys of an installation: the newest signs, all verify. The zero value is an empty Ring. A Ring
// is immutable and may be shared by goroutines. Compare Rings by Equal: reflection sees no keys.
type Ring struct {
	keys []Key // oldest first
}

// ErrNoKey says that a Ring is empty: nothing can be computed or compared.
var ErrNoKey = errors.New("no digest key is loaded yet: see the log lines about the digest-key Secret")

// NewRing reads the data of the digest-key Secret: every value is a key of at least 32 bytes, and the one whose data
// key comes last in byte order signs. A key that occurs twice counts at its last place. The error names the data key
// that is wrong, never its value.
func NewRing(data map[string][]byte) (Ring, error) {
	if len(data) == 0 {
		return Ring{}, errors.New("the digest-key Secret has no data")
	}
	var ring Ring
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if len(data[name]) < keySize {
			return Ring{}, fmt.Errorf("the digest-key Secret's data key %s has %d bytes: at least %d are needed",
				reference.Quote(name), len(data[name]), keySize)
		}
		key := newKey(data[name])
		if i := slices.IndexFunc(ring.keys, func(k Key) bool { return k.ID == key.ID }); i >= 0 {
			if !ring.keys[i].equal(key) {
				return Ring{}, fmt.Errorf("the digest-key Secret's data key %s has the same key ID %s as an older, "+
					"different one: replace it by other random bytes", reference.Quote(name), key.ID)
			}
			ring.keys = slices.Delete(ring.keys, i, i+1)
		}
		ring.keys = append(ring.keys, key)
	}
	return ring, nil
}

// Newest returns the key that signs; false when the Ring is empty.
func (r Ring) Newest() (Key, bool) {
	if len(r.keys) == 0 {
		return Key{}, false
	}
	return r.keys[len(r.keys)-1], true
}

// Key returns the key with the given ID; false when the Ring does not hold it (any more).
func (r Ring) Key(id KeyID) (Key, bool) {
	for _, key := range r.keys {
		if key.ID == id {
			return key, true
		}
	}
	return Key{}, false
}

// Keys returns all keys, oldest first: the last one signs.
func (r Ring) Keys() []Key {
	return slices.Clone(r.keys)
}

// Until returns the Ring without the keys that are newer than the given one, which then signs. It is false where the Ring
// does not hold that key.
func (r Ring) Until(id KeyID) (Ring, bool) {
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Ring{}, false
	}
	return Ring{keys: r.keys[: i+1 : i+1]}, true
}

// Equal reports whether both hold the same keys in the same order.
func (r Ring) Equal(o Ring) bool {
	return slices.EqualFunc(r.keys, o.keys, Key.equal)
}

// Empty reports whether there is no key at all.
func (r Ring) Empty() bool {
	return len(r.keys) == 0
}

// String names the keys by their IDs.
func (r Ring) String() string {
	ids := make([]KeyID, 0, len(r.keys))
	for _, key := range r.keys {
		ids = append(ids, key.ID)
	}
	return fmt.Sprintf("digest keys %v", ids)
}

// NewKey makes the bytes of a new digest key out of a source of randomness (crypto/rand.Reader, but for tests).
func NewKey(random io.Reader) ([]byte, error) {
	key := make([]byte, keySize)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("read %d random bytes for a digest key: %w", keySize, err)
	}
	return key, nil
}
