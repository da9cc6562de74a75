package referent

import (
	"encoding/base64"
	"encoding/binary"
	"hash"
	"hash/crc32"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// identity is what Kroxylicious counts of an object: its uid, and its generation, or its resourceVersion where it has none.
type identity struct {
	uid             string
	generation      int64
	resourceVersion string // where there is no generation
}

func identify(object *unstructured.Unstructured) identity {
	id := identity{uid: string(object.GetUID())}
	if generation, found, err := unstructured.NestedInt64(object.Object, "metadata", "generation"); found && err == nil {
		id.generation = generation
	} else {
		id.resourceVersion = object.GetResourceVersion()
	}
	return id
}

// identifyState is identify for a ConfigMap or a Secret: they have no generation.
func identifyState(state digest.State) identity {
	return identity{uid: state.UID, resourceVersion: state.ResourceVersion}
}

// write adds an object as Kroxylicious does (Crc32ChecksumGenerator.java of its operator): the bytes of the uid, the
// generation as 8 bytes with the most significant first, or the text of the resourceVersion, and the object's own checksum
// if it has one. Nothing separates them.
func (id identity) write(crc hash.Hash32, own string) {
	_, _ = crc.Write([]byte(id.uid)) // a hash never fails
	if id.resourceVersion != "" {
		_, _ = crc.Write([]byte(id.resourceVersion))
	} else {
		_, _ = crc.Write(binary.BigEndian.AppendUint64(nil, uint64(id.generation)))
	}
	_, _ = crc.Write([]byte(own))
}

// sumCRC32 is the checksum of Kroxylicious over objects, in their order: base64 without padding of 8 bytes, the first four
// of which are zero. A sum of 0, also that of no objects, is the empty text: then there is no annotation.
func sumCRC32(children []*node) string {
	crc := crc32.NewIEEE()
	for _, child := range children {
		if child.exists() {
			child.facts.identity.write(crc, child.digest(0))
		}
	}
	if crc.Sum32() == 0 {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(crc.Sum32())))
}
