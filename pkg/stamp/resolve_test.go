package stamp

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	expressions "github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What a pattern or a search tracks of deleted objects only the Record says; a PUT of a manifest forgets it.
func TestWriteWithoutRecordTracksWhatTheStoredOneHas(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	gone, used := reference.Ref{Kind: reference.ConfigMap, Name: "app-gone"}, reference.Ref{Kind: reference.Secret, Name: "used"}
	item := record.Item{Entry: "0123456789abcdef"}
	text, ok := record.New("", "1c9e04ab", map[reference.Ref]record.Item{gone: item, used: item}).Text(1000)
	require.True(t, ok, "the Record fits")
	object := func(managed map[string]any) workload.Object {
		managed["configmap.reloader.stakater.com/reload"] = "app-.*"
		managed["reloader.stakater.com/search"] = "true"
		return workload.Object{Kind: workload.DaemonSet(), Raw: map[string]any{
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
	request, problems := reader.NewWrite(&stored, object(map[string]any{}))
	assert.Empty(t, problems)
	assert.Equal(t, want, request.Old.Intent.Refs())
	assert.Equal(t, want, request.New.Intent.Refs(), "the rules put the Record back")
	require.NoError(t, request.New.Unresolved)
	request, _ = reader.NewWrite(nil, object(map[string]any{}))
	assert.Empty(t, request.New.Intent.Refs())

	unmatched = errors.New("to match takes long")
	request, _ = reader.NewWrite(&stored, stored)
	require.ErrorIs(t, request.New.Unresolved, unmatched)
	assert.Equal(t, want, request.New.Intent.Refs(), "names that were found before the end are not all")

	failure, unmatched = errors.New("not listed yet"), nil
	request, _ = reader.NewWrite(&stored, stored)
	require.ErrorIs(t, request.New.Unresolved, failure)
	assert.Equal(t, want, request.New.Intent.Refs(), "no tracked object is dropped meanwhile")
}

// A compact Record names nothing, so that without the names of the namespace it is not known what an expression tracks: then the
// workload is not one that asks for nothing.
func TestCompactRecordIsKeptWhileNothingIsListed(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	items := map[reference.Ref]record.Item{}
	for i := range 400 {
		items[reference.Ref{Kind: reference.Secret, Name: fmt.Sprintf("app-%03d-with-a-name-of-some-length-as-they-have", i)}] = record.Item{Entry: "0123456789abcdef"}
	}
	const hash = "1c9e04ab5cf5b1b0b3d0e4a1f5f7e7c2d1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6"
	text, ok := record.New(hash, "1c9e04ab", items).Text(10_000)
	require.True(t, ok, "the compact Record fits")
	compact, err := record.Parse(text)
	require.NoError(t, err)
	require.Empty(t, compact.Refs(), "it has no names")
	object := func(image string, more map[string]any) workload.Object {
		annotations := map[string]any{"secret.reloader.stakater.com/reload": "app-.*", keys.ConfigRecord: text}
		maps.Copy(annotations, more)
		maps.DeleteFunc(annotations, func(_ string, value any) bool { return value == nil })
		return workload.Object{Kind: workload.DaemonSet(), Raw: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": "web", "generation": int64(3), "annotations": annotations},
			"spec": map[string]any{"template": map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{keys.ConfigHash: hash}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}},
			}},
		}}
	}
	reader := Reader{
		Keys: keys, Dialects: []annotation.Dialect{annotation.Stakater{Keys: annotation.NewStakaterKeys()}},
		Objects: func(string) (annotation.Objects, error) { return nil, errors.New("not listed yet") },
	}
	ring := digesttest.Ring(t, "1")
	old := object("app:1", nil)
	decide := func(written workload.Object) Result {
		request, problems := reader.NewWrite(&old, written)
		require.Empty(t, problems)
		return Choose(request).Apply(request, Inputs{Ring: ring, Namespace: "shop", Now: time.Now()})
	}
	for name, test := range map[string]struct {
		written  workload.Object
		warnings int
	}{
		"an annotation": {object("app:1", map[string]any{"team": "a"}), 0},
		"a release":     {object("app:2", nil), 1},
		"no Record":     {object("app:1", map[string]any{keys.ConfigRecord: nil}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := decide(test.written)
			assert.Nil(t, result.Reject)
			assert.Equal(t, Managed{Hash: hash, Record: text}, result.Managed)
			assert.Len(t, result.Warnings, test.warnings, "%v", result.Warnings)
			assert.Equal(t, test.warnings > 0, result.ReadError != nil, "the user is warned where the state is needed")
		})
	}
	t.Run("a request for a reload", func(t *testing.T) {
		t.Parallel()
		result := decide(object("app:1", map[string]any{keys.ConfigHash: hash + "@3"}))
		require.NotNil(t, result.Reject, "purged, it would be lost")
		assert.False(t, result.Reject.Conflict, "reading the workload again would not help")
		assert.Contains(t, result.Reject.Message, "not listed yet")
	})
	ignored := func(o workload.Object) workload.Object {
		o.Raw["metadata"].(map[string]any)["labels"] = map[string]any{keys.IgnoredLabel: "true"}
		return o
	}
	t.Run("excluded by a label", func(t *testing.T) {
		t.Parallel()
		result := decide(ignored(object("app:1", nil)))
		assert.Equal(t, Managed{Hash: hash, Record: text}, result.Managed)
		assert.Empty(t, result.Warnings)
		assert.NoError(t, result.ReadError)
	})
	t.Run("a release, excluded by a label", func(t *testing.T) {
		t.Parallel()
		result := decide(ignored(object("app:2", nil)))
		assert.Equal(t, Managed{Hash: hash, Record: record.New(hash, "", nil).String()}, result.Managed)
		require.Len(t, result.Warnings, 1)
		assert.Contains(t, result.Warnings[0], "did not record what the new pods start with")
		assert.ErrorContains(t, result.ReadError, "not listed yet")
	})
	t.Run("created, excluded by a label", func(t *testing.T) {
		t.Parallel()
		request, _ := reader.NewWrite(nil, ignored(object("app:1", nil)))
		assert.Empty(t, Choose(request).Apply(request, Inputs{Ring: ring}).Warnings, "nothing is to be recorded")
	})
}

// partly are the objects of a namespace of which some were looked at.
type partly struct {
	annotation.Unlisted

	err error
}

func (p partly) Matching(reference.Kind, []*expressions.Pattern) []string {
	if p.err != nil {
		return []string{"app-other"}
	}
	return nil
}

func (p partly) Err() error { return p.err }
