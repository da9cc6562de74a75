package simulate

import (
	"bytes"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// withoutObjects is how a review says that it has neither object. Within a string, the quotes would be escaped.
const withoutObjects = `"object":null,"oldObject":null`

// encodeReview writes a review as JSON. The objects are JSON already: encoding/json would read and write them twice more.
func encodeReview(review *admissionv1.AdmissionReview) ([]byte, error) {
	small, request := *review, *review.Request
	small.Request = &request
	object, old := request.Object.Raw, request.OldObject.Raw
	request.Object, request.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	text, err := json.Marshal(&small)
	if err != nil {
		return nil, err
	}
	before, after, ok := bytes.Cut(text, []byte(withoutObjects))
	if !ok {
		return json.Marshal(review)
	}
	out := make([]byte, 0, len(text)+len(object)+len(old))
	out = append(append(out, before...), `"object":`...)
	out = append(appendObject(out, object), `,"oldObject":`...)
	return append(appendObject(out, old), after...), nil
}

func appendObject(out, object []byte) []byte {
	if len(object) == 0 {
		return append(out, "null"...)
	}
	return append(out, object...)
}
