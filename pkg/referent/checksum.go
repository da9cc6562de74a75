package referent

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// digestTag is the version of digests under HMAC. Golden vectors in testdata pin how they are computed: a change of one
// would restart every workload that a chain leads to, and needs another version.
const digestTag = "v1:"

// entry is what one child contributes to the digest of its parent: its identity, what counts of it, and its own digest;
// or that it is absent. Every text is preceded by its length as 8 bytes.
func entry(n *node, i int) []byte {
	gvr := n.resource.GVR
	size := 128 + len(n.key.Namespace) + len(n.key.Name)
	b := make([]byte, 0, size)
	for _, text := range []string{gvr.Group, gvr.Version, gvr.Resource, n.key.Namespace, n.key.Name} {
		b = appendText(b, text)
	}
	if !n.exists() {
		return appendText(b, "absent")
	}
	b = appendText(b, n.facts.version.rule)
	b = appendText(b, string(n.facts.version.bytes(i)))
	return appendText(b, n.digest(i))
}

func appendText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
	return append(b, text...)
}

// sum is the digest over the entries of children under a key: it does not depend on their order, nor on how often each
// of them is referred to.
func sum(key digest.Key, entries [][]byte) string {
	slices.SortFunc(entries, slices.Compare)
	entries = slices.CompactFunc(entries, slices.Equal)
	mac := key.MAC("pod-reloader referent v1")
	mac.Number(len(entries))
	for _, entry := range entries {
		mac.Bytes(entry)
	}
	sum := mac.Sum()
	return digestTag + string(key.ID) + hex.EncodeToString(sum[:])[:digest.HashSize-len(key.ID)]
}

// keyOf is the key that a published digest was made under; false where it is not a digest under HMAC.
func keyOf(published string) (digest.KeyID, bool) {
	hash, ok := strings.CutPrefix(published, digestTag)
	if !ok {
		return "", false
	}
	return digest.KeyOf(hash)
}

// workloadEntry is the Entry of a node for the Record of a workload.
func workloadEntry(key digest.Key, entry []byte) digest.Entry {
	mac := key.MAC("pod-reloader referent entry v1")
	mac.Bytes(entry)
	return mac.Sum()
}
