package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// mostOperations is how many operations a JSON patch may have, as in kube-apiserver.
const mostOperations = 10000

// patch answers a PATCH.
func (s *Server) patch(q *request) (answer, error) {
	var apply func(q *request, old *item) (object, error)
	switch types.PatchType(q.call.ContentType) {
	case types.JSONPatchType:
		operations, err := decodeOperations(q.call.Body)
		if err != nil {
			return answer{}, err
		}
		apply = func(q *request, old *item) (object, error) { return applyOperations(q, old, operations) }
	case types.MergePatchType:
		merge, err := decodeMerge(q.call.Body)
		if err != nil {
			return answer{}, err
		}
		apply = merge.apply
	case types.StrategicMergePatchType:
		apply = applyStrategic
	case types.ApplyYAMLPatchType:
		if s.tracker != nil && q.kind.tracked {
			return s.apply(q)
		}
		fallthrough
	default:
		return answer{}, unsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType))
	}
	return s.update(q, func(old *item) (object, error) {
		next, err := apply(q, old)
		if err != nil {
			return nil, err
		}
		s.trackUpdate(q, old.typed, next)
		return next, nil
	})
}

func decodeOperations(body []byte) (jsonpatch.Patch, error) {
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > mostOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", mostOperations, len(operations)))
	}
	return operations, nil
}

func applyOperations(q *request, old *item, operations jsonpatch.Patch) (object, error) {
	text, err := operations.Apply(old.json())
	if err != nil {
		// A test that fails, or a path that is missing. The message of the API server does not say what is wrong.
		return nil, unprocessable(err)
	}
	return q.patched(text)
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// patched decodes the outcome of a patch.
func (q *request) patched(text []byte) (object, error) {
	next := q.kind.make()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, next); err != nil {
		return nil, invalidPatch(string(text), err)
	}
	next.GetObjectKind().SetGroupVersionKind(q.kind.gvk)
	setDefaults(next)
	return next, nil
}

func invalidPatch(value string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), value, err.Error())})
}

func applyStrategic(q *request, old *item) (object, error) {
	patch := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(q.call.Body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	// The merge changes what it is given.
	merged, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(old.object()), patch, q.kind.empty())
	if err != nil {
		return nil, strategicError(err)
	}
	return q.converted(merged, patch)
}

// converted makes an object of its decoded JSON form.
func (q *request) converted(values, patch map[string]any) (object, error) {
	next := q.kind.make()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(values, next); err != nil {
		return nil, invalidPatch(fmt.Sprintf("%+v", patch), err)
	}
	next.GetObjectKind().SetGroupVersionKind(q.kind.gvk)
	setDefaults(next)
	return next, nil
}

func strategicError(err error) error {
	for _, bad := range []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	} {
		if errors.Is(err, bad) {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	if errors.Is(err, mergepatch.ErrNoListOfLists) || errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys) {
		return unprocessable(err)
	}
	return err
}

// forced reads the parameter force of an apply patch.
func (q *request) forced() bool { return q.query.Get("force") == "true" }
