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

// applied makes the object that a patch wants out of the one that is stored.
type applied func(q *request, old *item) (object, error)

// patch answers a PATCH.
func (s *Server) patch(q *request) (answer, error) {
	if q.call.ContentType == string(types.ApplyYAMLPatchType) && s.tracker != nil && !q.kind.custom {
		return s.apply(q)
	}
	if q.call.ContentType == string(types.ApplyYAMLPatchType) && q.kind.annotates {
		return s.applyAnnotations(q)
	}
	decode, ok := map[types.PatchType]func(body []byte) (applied, error){
		types.JSONPatchType: decodeOperationsOf, types.MergePatchType: decodeMerge, types.StrategicMergePatchType: decodeStrategic,
	}[types.PatchType(q.call.ContentType)]
	if !ok {
		return answer{}, unsupportedPatch()
	}
	if q.kind.custom && q.call.ContentType == string(types.StrategicMergePatchType) {
		return answer{}, unsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType))
	}
	if s.store.get(q.kind, q.at, 0) == nil {
		return answer{}, apierrors.NewNotFound(q.kind.gr, q.at.name) // whatever the patch is
	}
	apply, err := decode(q.call.Body)
	if err != nil {
		return answer{}, badPatch(err)
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

// badPatch is the answer to a patch that cannot be decoded, or is too long.
func badPatch(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewBadRequest("error decoding patch: " + err.Error())
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

func invalidPatch(value string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), value, err.Error())})
}

func decodeStrategic(body []byte) (applied, error) {
	patch := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(q *request, old *item) (object, error) {
		// The merge changes what it is given.
		merged, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(old.object()), runtime.DeepCopyJSON(patch), q.kind.empty())
		if err != nil {
			return nil, strategicError(err)
		}
		return q.converted(merged, patch)
	}, nil
}

// converted makes an object of its decoded JSON form.
func (q *request) converted(values, patch map[string]any) (object, error) {
	next := q.kind.make()
	if err := valuesInto(values, next); err != nil {
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
