package webhook

import (
	"bytes"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// objectWeight is what a JSON object counts besides its text. A decoded object with a member takes 336 bytes or more, also where its text is
// `{"":0}`. Without it, such a text takes up to 67 times its size; with it, at most 23 times what it counts.
const objectWeight = 10

// errTooLarge says that a review is heavier than what its namespace may use.
var errTooLarge = errors.New("the workload is too large")

// exactWeight is the weight from which braces within texts are left out, which takes some time: more than the usual review has.
const exactWeight = 64 << 10

// weightOf returns what the objects of a review count. In a small review, braces within texts count as well.
func weightOf(req *admissionv1.AdmissionRequest) int {
	if weight := weightBy(bracesIn, req); weight < exactWeight {
		return weight
	}
	return weightBy(objectsIn, req)
}

// weightBy returns the weight of a review by a count of objects that have a member.
func weightBy(count func(raw []byte) int, req *admissionv1.AdmissionRequest) int {
	weight := 0
	for _, raw := range [...][]byte{req.Object.Raw, req.OldObject.Raw} {
		weight += len(raw) + objectWeight*count(raw)
	}
	return weight
}

// bracesIn counts the objects that have a member in a JSON text, and the braces within its texts.
func bracesIn(raw []byte) int { return bytes.Count(raw, []byte("{")) - bytes.Count(raw, []byte("{}")) }

// objectsIn counts the objects that have a member in a valid JSON text.
func objectsIn(raw []byte) (objects int) {
	text := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++ // the next character is part of the text
		case '"':
			text = !text
		case '{':
			if !text && !bytes.HasPrefix(raw[i:], []byte("{}")) {
				objects++
			}
		}
	}
	return objects
}

// dropUnused drops what no rule looks at: the account takes up to seven times its text.
func dropUnused(req *admissionv1.AdmissionRequest) {
	req.UserInfo, req.Options = authenticationv1.UserInfo{}, runtime.RawExtension{}
}
