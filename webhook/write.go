package webhook

import (
	"bytes"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	rawjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// decodeObject reads one version of a workload; nil if there is none. Numbers keep their precision, and fields that
// this program does not know are kept as they are.
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

// validate reports what no API server sends. A namespace is part of the path of each read for the request: a long one would be copied
// thousands of times. It is empty for an object of the cluster.
func validate(req *admissionv1.AdmissionRequest) error {
	switch {
	case req.UID == "":
		return errors.New("the AdmissionReview has no request with a uid")
	case len(req.Namespace) > validation.DNS1123LabelMaxLength, req.Namespace != "" && len(validation.IsDNS1123Label(req.Namespace)) > 0:
		return fmt.Errorf("request.namespace %s is not the name of a namespace", reference.Quote(req.Namespace))
	}
	return nil
}

// decodeWrite reads both versions of the workload that a request writes.
func decodeWrite(kind workload.Kind, req *admissionv1.AdmissionRequest) (write, error) {
	current, err := decodeVersion("request.object", kind, req, req.Object.Raw)
	if err != nil {
		return write{}, err
	}
	wr := write{namespace: req.Namespace, current: *current}
	if req.Operation == admissionv1.Create {
		return wr, nil
	}
	wr.old, err = decodeVersion("request.oldObject", kind, req, req.OldObject.Raw)
	return wr, err
}

// decodeVersion reads one version of the workload. Its expressions are resolved in its own namespace, but the scope is that of the request:
// a caller could learn the names of a namespace that is out of scope. Where the version has no namespace, no name is known.
func decodeVersion(field string, kind workload.Kind, req *admissionv1.AdmissionRequest, raw []byte) (*workload.Object, error) {
	version, err := decodeObject(kind, raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", field, err)
	case version == nil:
		return nil, fmt.Errorf("%s is missing on %s", field, req.Operation)
	case version.Namespace() != "" && version.Namespace() != req.Namespace:
		return nil, fmt.Errorf("%s has the namespace %s: want that of the request", field, reference.Quote(version.Namespace()))
	}
	return version, nil
}
