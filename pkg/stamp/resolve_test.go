package stamp

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	expressions "github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What a pattern or a search tracks of deleted objects only the Record says; a PUT of a manifest forgets it.
func TestWriteWithoutRecordTracksWhatTheStoredOneHas(t *testing.T) {
	t.Parallel()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	gone, used := reference.Ref{Kind: reference.ConfigMap, Name: "app-gone"}, reference.Ref{Kind: reference.Secret, Name: "used"}
	item := record.Item{Entry: "0123456789abcdef"}
	text, ok := record.New("", "1c9e04ab", map[reference.Ref]record.Item{gone: item, used: item}).Text(1000)
	require.True(t, ok)
	object := func(managed map[string]any) workload.Object {
		managed["configmap.reloader.stakater.com/reload"] = "app-.*"
		managed["reloader.stakater.com/search"] = "true"
		return workload.Object{Kind: workload.Builtin()[0], Raw: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "annotations": managed},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"volumes": []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": "used"}}},
			}}},
		}}
	}
	var failure, unmatched error
	reader := Reader{
		Keys: keys, Dialects: []annotation.Dialect{annotation.Stakater{Keys: annotation.NewStakaterKeys()}},
		Objects: func(namespace string) (annotation.Objects, error) {
			assert.Equal(t, "shop", namespace)
			return partly{err: unmatched}, failure
		},
	}
	stored := object(map[string]any{keys.ConfigRecord: text})
	want := []reference.Ref{gone, used}
	request, problems := reader.NewRequest(&stored, object(map[string]any{}))
	assert.Empty(t, problems)
	assert.Equal(t, want, request.Old.Intent.Refs())
	assert.Equal(t, want, request.New.Intent.Refs(), "the rules put the Record back")
	require.NoError(t, request.New.Unresolved)
	request, _ = reader.NewRequest(nil, object(map[string]any{}))
	assert.Empty(t, request.New.Intent.Refs())

	unmatched = errors.New("to match takes long")
	request, _ = reader.NewRequest(&stored, stored)
	require.ErrorIs(t, request.New.Unresolved, unmatched)
	assert.Equal(t, want, request.New.Intent.Refs(), "names that were found before the end are not all")

	failure, unmatched = errors.New("not listed yet"), nil
	request, _ = reader.NewRequest(&stored, stored)
	require.ErrorIs(t, request.New.Unresolved, failure)
	assert.Equal(t, want, request.New.Intent.Refs(), "no tracked object is dropped meanwhile")
}

// partly are the objects of a namespace of which some were looked at.
type partly struct {
	annotation.Unlisted

	err error
}

func (p partly) Matching(reference.Kind, *expressions.Pattern) []string {
	if p.err != nil {
		return []string{"app-other"}
	}
	return nil
}

func (p partly) Err() error { return p.err }
