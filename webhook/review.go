package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rawjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

var reviewKind = admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")

// decodeReview reads the request out of a review. The objects in it stay raw.
func decodeReview(body []byte) (*admissionv1.AdmissionRequest, error) {
	var review admissionv1.AdmissionReview
	if err := rawjson.Unmarshal(body, &review); err != nil {
		return nil, fmt.Errorf("the body is no AdmissionReview: %w", err)
	}
	if got := review.GroupVersionKind(); got != reviewKind {
		return nil, fmt.Errorf("the body is %s: want %s; set admissionReviewVersions to [v1]",
			describeKind(got), describeKind(reviewKind))
	}
	if review.Request == nil {
		return nil, errors.New("the AdmissionReview has no request")
	}
	if review.Request.UID == "" {
		return nil, errors.New("the request of the AdmissionReview has no uid")
	}
	return review.Request, nil
}

func describeKind(gvk schema.GroupVersionKind) string {
	if gvk.Empty() {
		return "of no kind"
	}
	return fmt.Sprintf("%.100q", workload.ID(gvk))
}

// encodeReview returns the body of an answer.
func encodeReview(response *admissionv1.AdmissionResponse) []byte {
	review := admissionv1.AdmissionReview{Response: response}
	review.SetGroupVersionKind(reviewKind)
	body, err := json.Marshal(review)
	if err != nil {
		// All of it is strings, numbers and bytes.
		panic(fmt.Errorf("encode an admission response: %w", err))
	}
	return body
}

// gvk converts the form in which a review names a kind.
func gvk(k metav1.GroupVersionKind) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// decodeObject reads one version of a workload; nil if there is none. Numbers keep their precision, and fields that
// nobody knows are kept as they are.
func decodeObject(kind workload.Kind, raw []byte) (*workload.Object, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // absent is an answer
	}
	var fields map[string]any
	if err := rawjson.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return &workload.Object{Kind: kind, Raw: fields}, nil
}

// write is one write of a workload as the review describes it.
type write struct {
	namespace string
	// old is nil on CREATE.
	old     *workload.Object
	current workload.Object
}

// decodeWrite reads both versions of the workload that a request writes.
func decodeWrite(kind workload.Kind, req *admissionv1.AdmissionRequest) (write, error) {
	current, err := decodeObject(kind, req.Object.Raw)
	if err != nil {
		return write{}, fmt.Errorf("request.object: %w", err)
	}
	if current == nil {
		return write{}, fmt.Errorf("request.object is missing on %s", req.Operation)
	}
	wr := write{namespace: req.Namespace, current: *current}
	if req.Operation == admissionv1.Create {
		return wr, nil
	}
	if wr.old, err = decodeObject(kind, req.OldObject.Raw); err != nil {
		return write{}, fmt.Errorf("request.oldObject: %w", err)
	}
	if wr.old == nil {
		return write{}, fmt.Errorf("request.oldObject is missing on %s", req.Operation)
	}
	return wr, nil
}
