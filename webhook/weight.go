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

// weightOf returns what the objects of a review count. Braces within texts count as well.
func weightOf(req *admissionv1.AdmissionRequest) int {
	weight := 0
	for _, raw := range [...][]byte{req.Object.Raw, req.OldObject.Raw} {
		weight += len(raw) + objectWeight*(bytes.Count(raw, []byte("{"))-bytes.Count(raw, []byte("{}")))
	}
	return weight
}

// dropUnused drops what no rule looks at: the account takes up to seven times its text.
func dropUnused(req *admissionv1.AdmissionRequest) {
	req.UserInfo, req.Options = authenticationv1.UserInfo{}, runtime.RawExtension{}
}
