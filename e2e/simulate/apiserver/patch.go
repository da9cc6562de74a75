package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// patch answers a PATCH.
func (s *Server) patch(q *request) (answer, error) {
	var apply func(q *request, old *item) (object, error)
	switch types.PatchType(q.call.ContentType) {
	case types.JSONPatchType:
		operations, err := decodeOperations(q.call.Body)
		if err != nil {
			return answer{}, err
		}
		apply = operations.apply
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

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
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
