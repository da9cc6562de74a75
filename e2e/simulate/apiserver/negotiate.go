package apiserver

import (
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// media is the form of an answer.
type media struct {
	protobuf bool
	// partial reduces objects to their metadata.
	partial bool
}

// contentType returns the header of an answer that is not a watch.
func (m media) contentType() string {
	if m.protobuf {
		return protobufType
	}
	return jsonType
}

// streamType returns the header of a watch.
func (m media) streamType() string {
	if m.protobuf {
		return protobufType + ";stream=watch"
	}
	return jsonType
}

// negotiate returns the first form of an Accept header that can be served. Quality values are not looked at: no client of
// the simulator sends any.
func negotiate(accept string) (media, error) {
	if accept == "" {
		return media{}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		if m, ok := form(strings.TrimSpace(clause)); ok {
			return m, nil
		}
	}
	return media{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + jsonType + ", " + protobufType,
	}}
}

func form(clause string) (media, bool) {
	switch clause {
	case jsonType, "*/*", "application/*":
		return media{}, true
	case protobufType:
		return media{protobuf: true}, true
	}
	kind, params, err := mime.ParseMediaType(clause)
	if err != nil || (kind != jsonType && kind != protobufType && kind != "*/*") {
		return media{}, false
	}
	m := media{protobuf: kind == protobufType}
	switch as := params["as"]; {
	case as == "":
		return m, true
	case (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") && params["g"] == metav1.GroupName:
		m.partial = true
		return m, params["v"] == "v1"
	}
	return media{}, false
}

// negotiated is negotiate with a memory: clients send few different headers.
func (s *Server) negotiated(accept string) (media, error) {
	if m, ok := s.accepts.Load(accept); ok {
		found, _ := m.(media)
		return found, nil
	}
	m, err := negotiate(accept)
	if err == nil {
		s.accepts.Store(accept, m)
	}
	return m, err
}

// bodyType returns the media type of a request body; the API server takes what has none for JSON.
func bodyType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	if kind = strings.TrimSpace(kind); kind == "" {
		return jsonType
	}
	return kind
}

// unsupportedPatch is what the router of the API server says before its own code sees the request.
func unsupportedPatch() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
	}}
}

func unsupportedMedia(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

var partialKind = schema.GroupVersionKind{Group: metav1.GroupName, Version: "v1", Kind: "PartialObjectMetadata"}
