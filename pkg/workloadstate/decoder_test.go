package workloadstate

import (
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func newFollower() *follower {
	all := func(string) bool { return true }
	s := New(Options{Keep: workload.Keep{Label: all, Annotation: all}})
	return &follower{of: s.Watch(workload.Deployment(), nil), shape: workload.Shape(workload.Deployment()), log: logr.Discard()}
}

func TestDecodeEvents(t *testing.T) {
	t.Parallel()
	body := event("ADDED", deployment("shop", "a", 1)) + initialEnd(5) +
		event("ERROR", `{"kind":"Status","message":"too old","code":410}`)
	next := newFollower().events(strings.NewReader(body))
	kind, object, err := next()
	require.NoError(t, err)
	assert.Equal(t, watch.Added, kind)
	require.IsType(t, &item{}, object)
	assert.Equal(t, metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: "1"}, object.(*item).ObjectMeta)
	kind, object, err = next()
	require.NoError(t, err)
	assert.Equal(t, watch.Bookmark, kind)
	assert.Equal(t, "5", object.(*item).ResourceVersion)
	assert.Equal(t, "true", object.(*item).Annotations[metav1.InitialEventsAnnotationKey])
	kind, object, err = next()
	require.NoError(t, err)
	assert.Equal(t, watch.Error, kind)
	assert.Equal(t, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Message: "too old", Code: 410}, object)
	_, _, err = next()
	require.ErrorIs(t, err, io.EOF)
}

func TestDecodeRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"type":"ADDED"}`, `{"type":"ADDED","object":5}`, `"x"`, `{"type":"ADDED","object":{]}`, `{"type":"ERROR","object":{"code":"x"}}`} {
		next := newFollower().events(strings.NewReader(body))
		_, _, err := next()
		require.Error(t, err, body)
		require.NotErrorIs(t, err, io.EOF, body)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF, body)
	}
	_, _, err := newFollower().events(strings.NewReader(`{"type":"ADDED"`))()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestReadList(t *testing.T) {
	t.Parallel()
	f := newFollower()
	list, err := f.readList(strings.NewReader(listOf(5, deployment("shop", "a", 1), deployment("shop", "b", 2))))
	require.NoError(t, err)
	assert.Equal(t, "5", list.ResourceVersion)
	require.Len(t, list.Items, 2)
	assert.Equal(t, "b", list.Items[1].Name)
	for _, wrong := range []string{
		`{"metadata":{"resourceVersion":"5"},"items":[` + deployment("shop", "a", 1),
		`{"metadata":5,"items":[]}`,
		`{"items":[{"metadata":]}`,
		``, `{}`, `{"kind":"Status"}`, `{"items":[5]}`, `{"items":5}`,
	} {
		_, err := f.readList(strings.NewReader(wrong))
		require.Error(t, err, wrong)
	}
}
