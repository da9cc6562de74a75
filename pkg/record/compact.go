package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// compactMark begins the compact form. It is followed by one digit of salt and then, for each item in the order of the
// hashes, the digits below: no name, no separator. Digits are those of base64 for URLs, 6 bits each.
const compactMark = "*"

const (
	refDigits     = 5
	contentDigits = 11
	stateDigits   = 1
	versionDigits = 6
	itemDigits    = refDigits + contentDigits + stateDigits + versionDigits
)

// The bits of the state digit.
const (
	stateAbsent  = 1 << 0
	stateAdopted = 1 << 1
	stateHinted  = 1 << 2
)

// compactItems are the items of a Record without the names of their Refs: a hash of 30 bits stands for each.
type compactItems struct {
	// salt goes into the hashes. It is the first one that keeps those of the recorded Refs apart.
	salt   byte
	byHash map[uint32]Item
}

// salts is how many values one digit of salt has. That 1,000 Refs collide under one is 1 in 2,000.
const salts = 64

// compacted returns the compact form of named items; false where their hashes collide under every salt.
func compacted(items map[reference.Ref]Item) (*compactItems, bool) {
	for salt := range byte(salts) {
		c := compactItems{salt: salt, byHash: make(map[uint32]Item, len(items))}
		for ref, item := range items {
			c.byHash[c.hash(ref)] = item
		}
		if len(c.byHash) == len(items) {
			return &c, true
		}
	}
	return nil, false
}

// hash returns the 30 bits that stand for a Ref.
func (c *compactItems) hash(ref reference.Ref) uint32 {
	sum := sha256.Sum256(append([]byte{c.salt}, ref.String()...))
	return binary.BigEndian.Uint32(sum[:4]) >> 2
}

// of returns the items of some Refs, but for those that have the same hash as another of them.
func (c *compactItems) of(refs []reference.Ref) map[reference.Ref]Item {
	owners := make(map[uint32]reference.Ref, len(refs))
	items := make(map[reference.Ref]Item, len(refs))
	for _, ref := range refs {
		hash := c.hash(ref)
		if other, collides := owners[hash]; collides && other != ref {
			delete(items, other)
			continue
		}
		owners[hash] = ref
		if item, ok := c.byHash[hash]; ok {
			items[ref] = item
		}
	}
	return items
}

func (c *compactItems) appendTo(b []byte) []byte {
	b = append(b, compactMark...)
	b = appendDigits(b, uint64(c.salt), 1)
	for _, hash := range slices.Sorted(maps.Keys(c.byHash)) {
		item := c.byHash[hash]
		b = appendDigits(b, uint64(hash), refDigits)
		var state uint64
		var content uint64
		if item.Absent() {
			state |= stateAbsent
		} else {
			content, _ = strconv.ParseUint(item.Entry, 16, 64) // 16 hex digits always are a number
		}
		if item.Adopted {
			state |= stateAdopted
		}
		version, hinted := compactHint(item)
		if hinted {
			state |= stateHinted
		}
		b = appendDigits(b, content, contentDigits)
		b = appendDigits(b, state, stateDigits)
		b = appendDigits(b, version, versionDigits)
	}
	return b
}

// compactHint returns a hint as a number of 36 bits; false where there is none or it does not fit. That costs a read.
func compactHint(item Item) (uint64, bool) {
	version, err := strconv.ParseUint(item.Hint, 10, 6*versionDigits)
	if err != nil || strconv.FormatUint(version, 10) != item.Hint {
		return 0, false
	}
	return version, true
}

func parseCompact(text string) (*compactItems, error) {
	digits := strings.TrimPrefix(text, compactMark)
	if len(digits) <= 1 || len(digits)%itemDigits != 1 {
		return nil, fmt.Errorf("the compact items have %d digits: want one, and %d for each item", len(digits), itemDigits)
	}
	salt, ok := readDigits(digits[:1])
	if !ok {
		return nil, fmt.Errorf("the salt %s is not a base64 digit", reference.Quote(digits[:1]))
	}
	c := &compactItems{salt: byte(salt), byHash: make(map[uint32]Item, len(digits)/itemDigits)}
	previous := int64(-1)
	for n, digits := 1, digits[1:]; digits != ""; n, digits = n+1, digits[itemDigits:] {
		hash, item, err := parseCompactItem(digits[:itemDigits])
		if err == nil && cmp.Compare(int64(hash), previous) <= 0 {
			err = errors.New("it is not behind the one before it")
		}
		if err != nil {
			return nil, fmt.Errorf("compact item %d, %s: %w", n, reference.Quote(digits[:itemDigits]), err)
		}
		c.byHash[hash], previous = item, int64(hash)
	}
	return c, nil
}

func parseCompactItem(text string) (uint32, Item, error) {
	hash, ok1 := readDigits(text[:refDigits])
	text = text[refDigits:]
	content, ok2 := readDigits(text[:contentDigits])
	text = text[contentDigits:]
	state, ok3 := readDigits(text[:stateDigits])
	version, ok4 := readDigits(text[stateDigits:])
	absent, hinted := state&stateAbsent != 0, state&stateHinted != 0
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4:
		return 0, Item{}, errors.New("it is not made of base64 digits, or they are too large")
	case state > stateAbsent|stateAdopted|stateHinted, absent && (hinted || content != 0), !hinted && version != 0:
		return 0, Item{}, errors.New("its parts contradict each other")
	}
	item := Item{Adopted: state&stateAdopted != 0}
	if !absent {
		item.Entry = fmt.Sprintf("%016x", content)
	}
	if hinted {
		item.Hint = strconv.FormatUint(version, 10)
	}
	return uint32(hash), item, nil
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// appendDigits appends a number, the most significant digit first.
func appendDigits(b []byte, number uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, alphabet[number>>(6*i)&63])
	}
	return b
}

// readDigits reads a number; false where a character is no digit or the number has more than 64 bits.
func readDigits(text string) (uint64, bool) {
	var number uint64
	for i := range len(text) {
		digit := strings.IndexByte(alphabet, text[i])
		if digit < 0 || number>>58 != 0 {
			return 0, false
		}
		number = number<<6 | uint64(digit)
	}
	return number, true
}
