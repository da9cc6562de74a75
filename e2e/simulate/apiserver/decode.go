package apiserver

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decode reads the object that a create or update sends, with its defaults. Fields that the API does not have are dropped,
// without the warning that kube-apiserver gives: looking for them costs as much as the decoding.
func (q *request) decode() (object, error) {
	o := q.kind.make()
	switch q.call.ContentType {
	case protobufType:
		if err := decodeProtobuf(q.call.Body, o); err != nil {
			return nil, q.undecodable(err)
		}
	case yamlType:
		text, err := yaml.YAMLToJSON(q.call.Body)
		if err != nil {
			return nil, q.undecodable(err)
		}
		if err := q.decodeText(text, o); err != nil {
			return nil, err
		}
	case jsonType:
		if err := q.decodeText(q.call.Body, o); err != nil {
			return nil, err
		}
	default:
		return nil, unsupportedMedia(jsonType, yamlType, protobufType)
	}
	if err := q.matchKind(o); err != nil {
		return nil, err
	}
	setDefaults(o)
	return o, nil
}

func (q *request) decodeText(text []byte, o object) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, o); err != nil {
		return q.undecodable(err)
	}
	return nil
}

// undecodable is the answer to a body that is no object of the kind.
func (q *request) undecodable(err error) error {
	if body := q.call.Body; q.call.ContentType == jsonType && !json.Valid(body) {
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): "+
			"couldn't get version/kind; json parse error: %v (%s)", q.kind.Kind, err, summary(body)))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", q.kind.Kind, q.kind.Version, q.kind.Kind, err))
}

// summary shows the beginning of a body.
func summary(body []byte) string {
	const most = 30
	if len(body) == 0 {
		return "<empty>"
	}
	text := func(part []byte) string {
		if body[0] == '{' {
			return string(part)
		}
		return hex.EncodeToString(part)
	}
	if len(body) > most {
		return text(body[:most]) + " ..."
	}
	return text(body)
}

// matchKind checks the kind that the body names; it may leave it out.
func (q *request) matchKind(o object) error {
	got := o.GetObjectKind().GroupVersionKind()
	o.GetObjectKind().SetGroupVersionKind(q.kind.gvk)
	if got == q.kind.gvk {
		return nil
	}
	group := cmp.Or(q.kind.Group, "core")
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s.%s) to (%s.%s): unknown conversion",
		got.Kind, got.Version, q.kind.Kind, got.Version, got.Kind, group, q.kind.Kind))
}

// decodeProtobuf reads an enveloped object; what the envelope says of the kind goes into it.
func decodeProtobuf(data []byte, o object) error {
	unknown, err := unwrap(data)
	if err != nil {
		return err
	}
	if err := o.Unmarshal(unknown.Raw); err != nil {
		return fmt.Errorf("decode the message: %w", err)
	}
	if unknown.APIVersion != "" || unknown.Kind != "" {
		gvk := (&metav1.TypeMeta{APIVersion: unknown.APIVersion, Kind: unknown.Kind}).GroupVersionKind()
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}

// decodeMessage reads an enveloped message of any kind.
func decodeMessage(data []byte, m message) error {
	unknown, err := unwrap(data)
	if err != nil {
		return err
	}
	if err := m.Unmarshal(unknown.Raw); err != nil {
		return fmt.Errorf("decode the message: %w", err)
	}
	return nil
}

func unwrap(data []byte) (runtime.Unknown, error) {
	var unknown runtime.Unknown
	if !bytes.HasPrefix(data, magic[:]) {
		return unknown, errors.New("the body is not protobuf, which its content type says")
	}
	if err := unknown.Unmarshal(data[len(magic):]); err != nil {
		return unknown, fmt.Errorf("decode the envelope: %w", err)
	}
	if t := unknown.ContentType; t != "" && t != protobufType {
		return unknown, fmt.Errorf("the envelope holds %s", t)
	}
	return unknown, nil
}

// place makes the object say the namespace and name of the path, or says how they disagree. A create takes the name from
// the object.
func (q *request) place(o object) error {
	meta := metaOf(o)
	switch {
	case !q.kind.Namespaced:
		meta.Namespace = ""
	case meta.Namespace == "":
		meta.Namespace = q.at.namespace
	case meta.Namespace != q.at.namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if q.at.name == "" || meta.Name == q.at.name {
		return nil
	}
	if meta.Name == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", q.at.name))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", meta.Name, q.at.name))
}
