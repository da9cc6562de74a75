package apiserver

import (
	"encoding/json"
	"fmt"

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
func (o operations) apply(q *request, old *item) (object, error) {
	if next, ok := o.annotated(old); ok {
		setDefaults(next)
		return next, nil
	}
	text, err := o.patch(old)
	if err != nil {
		// A test that fails, or a path that is missing. The message of the API server does not say what is wrong.
		return nil, unprocessable(err)
	}
	next, err := q.kind.decode(text)
	if err != nil {
		return nil, invalidPatch(string(text), err)
	}
	setDefaults(next)
	return next, nil
}

// patch applies the operations to the JSON form of an object.
func (o operations) patch(i *item) ([]byte, error) { return jsonpatch.Patch(o).Apply(i.json()) }

// decode makes an object out of a patched one.
func (k *kind) decode(text []byte) (object, error) {
	o := k.make()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, o); err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return o, nil
}
