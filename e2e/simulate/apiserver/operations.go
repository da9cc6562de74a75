package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
)

// mostOperations is how many operations a JSON patch may have, as in kube-apiserver.
const mostOperations = 10000

// operations is a decoded JSON patch (RFC 6902).
type operations jsonpatch.Patch

func decodeOperations(body []byte) (operations, error) {
	var text json.RawMessage
	if err := json.Unmarshal(body, &text); err != nil {
		return nil, err // the library has no words for it
	}
	decoded, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	if len(decoded) > mostOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", mostOperations, len(decoded)))
	}
	return operations(decoded), nil
}

func decodeOperationsOf(body []byte) (applied, error) {
	decoded, err := decodeOperations(body)
	return decoded.apply, err
}

// apply patches an object for a client.
func (o operations) apply(_ *request, old *item) (object, error) {
	if next, ok := o.annotated(old); ok {
		setDefaults(next)
		return next, nil
	}
	text, parts, err := o.patch(old)
	if err != nil {
		// A test that fails, or a path that is missing. The message of the API server does not say what is wrong.
		return nil, unprocessable(err)
	}
	next, err := parts.decode(old, text)
	if err != nil {
		return nil, invalidPatch(string(text), err)
	}
	setDefaults(next)
	return next, nil
}

// parts says which parts of an object a patch touches; all false means that it is taken as a whole.
type parts struct{ meta, spec, status bool }

// patch applies the operations to the JSON form of an object, or of the parts of it that they touch.
func (o operations) patch(i *item) ([]byte, parts, error) {
	touched := o.parts(i.kind)
	document := i.json()
	if touched != (parts{}) {
		document = document[:0:0]
		for _, part := range []struct {
			name    string
			touched bool
			json    func() []byte
		}{{"metadata", touched.meta, i.metadataJSON}, {"spec", touched.spec, i.specJSON}, {"status", touched.status, i.statusJSON}} {
			if part.touched {
				document = append(append(document, `,"`+part.name+`":`...), part.json()...)
			}
		}
		document[0] = '{'
		document = append(document, '}')
	}
	text, err := jsonpatch.Patch(o).Apply(document)
	return text, touched, err
}

// parts returns what the operations touch, if it is only parts of an object of a kind that has such.
func (o operations) parts(k *kind) parts {
	var touched parts
	if k.spec == nil {
		return touched
	}
	for _, operation := range o {
		path, err := operation.Path()
		if err != nil {
			return parts{}
		}
		paths := []string{path}
		if from, err := operation.From(); err == nil {
			paths = append(paths, from)
		}
		for _, path := range paths {
			if !touched.add(path) {
				return parts{}
			}
		}
	}
	return touched
}

// add notes a path below one of the parts; it returns false for any other.
func (p *parts) add(path string) bool {
	first, _, below := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case first == "metadata" && below:
		p.meta = true
	case first == "spec" && below:
		p.spec = true
	case first == "status" && below:
		p.status = true
	default:
		return false
	}
	return true
}

// decode makes an object out of a patched one: what the patch does not touch is that of the item.
func (p parts) decode(from *item, text []byte) (object, error) {
	fresh := from.kind.make()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, fresh); err != nil {
		return nil, err
	}
	fresh.GetObjectKind().SetGroupVersionKind(from.kind.gvk)
	if p == (parts{}) {
		return fresh, nil
	}
	next := clone(from.typed)
	if p.meta {
		*metaOf(next) = *metaOf(fresh)
	}
	if p.spec {
		copySpec(next, fresh)
	}
	if p.status {
		copyStatus(next, fresh)
	}
	return next, nil
}
