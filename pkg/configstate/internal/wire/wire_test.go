package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
)

const plainText = "correct horse battery staple"

// encode is what the API server does.
func encode(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	kinds, _, err := scheme.ObjectKinds(object)
	require.NoError(t, err)
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	var out bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(scheme, scheme).Encode(object, &out))
	return out.Bytes()
}

func metadata(name string) metav1.ObjectMeta {
	seconds := int64(30)
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, GenerateName: "x", UID: types.UID("uid-" + name), ResourceVersion: "81234",
		Generation: 7, CreationTimestamp: metav1.Unix(1e9, 0), DeletionGracePeriodSeconds: &seconds,
		Annotations:     map[string]string{"ours": "yes", "last-applied": plainText},
		Labels:          map[string]string{"ours": "label", "app": "x"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Certificate", Name: "c", UID: "owner"}},
		Finalizers:      []string{"f"},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
}

func ours() wire.Keep {
	return wire.Keep{Annotation: func(key, _ []byte) bool { return isOurs(string(key)) }, Label: isOurs}
}

func isOurs(key string) bool { return key == "ours" }

func want(name string) wire.Meta {
	return wire.Meta{
		Namespace: "shop", Name: name, UID: "uid-" + name, ResourceVersion: "81234",
		Annotations: map[string]string{"ours": "yes"},
		Labels:      map[string]string{"ours": "label"},
	}
}

func open(t *testing.T, data []byte) []byte {
	t.Helper()
	_, message, err := wire.Object(data)
	require.NoError(t, err)
	return message
}

func TestMetaOf(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]runtime.Object{
		"PartialObjectMetadata": &metav1.PartialObjectMetadata{ObjectMeta: metadata("db")},
		"Secret":                &corev1.Secret{ObjectMeta: metadata("db"), Data: map[string][]byte{"a": {1}}},
		"ConfigMap":             &corev1.ConfigMap{ObjectMeta: metadata("db"), Data: map[string]string{"a": "b"}},
	} {
		data := encode(t, object)
		kind, message, err := wire.Object(data)
		require.NoError(t, err)
		assert.Equal(t, name, kind)
		meta, err := wire.MetaOf(message, ours())
		require.NoError(t, err)
		assert.Equal(t, want("db"), meta)
		meta, err = wire.MetaOf(message, wire.Keep{})
		require.NoError(t, err)
		assert.Nil(t, meta.Annotations, "they were not asked for")
		assert.Nil(t, meta.Labels, "they were not asked for")
	}
}

func TestSecretOf(t *testing.T) {
	t.Parallel()
	immutable := true
	object := &corev1.Secret{
		ObjectMeta: metadata("db"), Type: corev1.SecretTypeOpaque, Immutable: &immutable,
		Data:       map[string][]byte{"password": []byte(plainText), "empty": {}, "binary": {0, 0xff}},
		StringData: map[string]string{"never": "stored"},
	}
	data := encode(t, object)
	secret, meta, err := wire.SecretOf(open(t, data))
	require.NoError(t, err)
	assert.Equal(t, object.Data, secret.Data)
	assert.Equal(t, "db", secret.Name)
	assert.Equal(t, "shop", secret.Namespace)
	assert.Equal(t, "81234", meta.ResourceVersion)

	clear(data)
	assert.NotContains(t, string(secret.Data["password"]), plainText, "the values are where they were received")
}

func TestConfigMapOf(t *testing.T) {
	t.Parallel()
	object := &corev1.ConfigMap{
		ObjectMeta: metadata("app"), Data: map[string]string{"a": "1", "empty": ""},
		BinaryData: map[string][]byte{"b": {0, 0xff}},
	}
	configMap, meta, err := wire.ConfigMapOf(open(t, encode(t, object)))
	require.NoError(t, err)
	assert.Equal(t, object.Data, configMap.Data)
	assert.Equal(t, object.BinaryData, configMap.BinaryData)
	assert.Equal(t, "uid-app", meta.UID)
}

func frame(t testing.TB, kind watch.EventType, object runtime.Object) []byte {
	t.Helper()
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: encode(t, object)}}
	message, err := event.Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func TestReadEvent(t *testing.T) {
	t.Parallel()
	bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	large := &metav1.PartialObjectMetadata{ObjectMeta: metadata("large")}
	large.Annotations["last-applied"] = strings.Repeat(plainText, 5000)
	var stream bytes.Buffer
	stream.Write(frame(t, watch.Added, &metav1.PartialObjectMetadata{ObjectMeta: metadata("one")}))
	stream.Write(frame(t, watch.Modified, large))
	stream.Write(frame(t, watch.Bookmark, bookmark))
	stream.Write(frame(t, watch.Error, &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}))

	// One byte at a time: no boundary of a Read is one of a frame.
	r := iotest.OneByteReader(&stream)
	var buffer wire.Buffer
	for _, expected := range []wire.Event{
		{Type: watch.Added, Meta: want("one")},
		{Type: watch.Modified, Meta: want("large")},
		{Type: watch.Bookmark, Meta: wire.Meta{ResourceVersion: "9", InitialEnd: true}},
	} {
		event, err := wire.ReadEvent(r, &buffer, ours())
		require.NoError(t, err)
		assert.Equal(t, expected, event)
		rest, err := buffer.Fill(bytes.NewReader(make([]byte, 32)), 32)
		require.NoError(t, err)
		assert.NotContains(t, string(rest[:cap(rest)]), plainText, "nothing remains in the buffer")
		assert.LessOrEqual(t, cap(rest), 32<<10, "nor does a large buffer")
	}
	event, err := wire.ReadEvent(r, &buffer, ours())
	require.NoError(t, err)
	require.NotNil(t, event.Status)
	assert.Equal(t, metav1.StatusReasonExpired, event.Status.Reason)
	_, err = wire.ReadEvent(r, &buffer, ours())
	require.Equal(t, io.EOF, err, "the end between two events is an ordinary one")
}

func TestReadList(t *testing.T) {
	t.Parallel()
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "more"}}
	for _, name := range []string{"a", "b", "c"} {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metadata(name)})
	}
	data := encode(t, list)
	got, err := wire.ReadList(iotest.OneByteReader(bytes.NewReader(data)), ours())
	require.NoError(t, err)
	assert.Equal(t, wire.List{
		ResourceVersion: "77", Continue: "more", Items: []wire.Meta{want("a"), want("b"), want("c")},
	}, got)

	empty, err := wire.ReadList(bytes.NewReader(encode(t, &metav1.PartialObjectMetadataList{})), ours())
	require.NoError(t, err)
	assert.Empty(t, empty.Items)
}

func TestOnlyItemOfAList(t *testing.T) {
	t.Parallel()
	list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: metadata("a"), Data: map[string]string{"key": "value"}}}}
	data := encode(t, list)
	message, found, err := wire.SingleItem(data)
	require.NoError(t, err)
	require.True(t, found, "the list has one item")
	object, meta, err := wire.ConfigMapOf(message)
	require.NoError(t, err)
	assert.Equal(t, "a", meta.Name)
	assert.Equal(t, map[string]string{"key": "value"}, object.Data)

	_, found, err = wire.SingleItem(encode(t, &corev1.ConfigMapList{}))
	require.NoError(t, err)
	assert.False(t, found, "the list is empty")
	_, _, err = wire.SingleItem(data[:len(data)/2])
	require.Error(t, err)
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metadata("a")}
	list := encode(t, &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*object}})
	event := frame(t, watch.Added, object)
	// Last in the envelope are the encoding and the content type, which are empty here: two bytes each, without which all is whole.
	for n := range len(list) - 4 {
		_, err := wire.ReadList(bytes.NewReader(list[:n]), ours())
		require.Error(t, err, "%d of %d bytes of a list", n, len(list))
		_, _, err = wire.SingleItem(list[:n])
		require.Error(t, err, "%d of %d bytes of a list of one object", n, len(list))
	}
	data := encode(t, object)
	for n := range len(data) - 4 {
		_, _, err := wire.Object(data[:n])
		require.Error(t, err, "%d of %d bytes of an object", n, len(data))
	}
	for n := range len(event) - 1 {
		_, err := wire.ReadEvent(bytes.NewReader(event[:n+1]), &wire.Buffer{}, ours())
		require.Error(t, err, "%d of %d bytes of an event", n+1, len(event))
		assert.NotEqual(t, io.EOF, err)
	}
}

// TestListThatEndsEarlyIsAnError cuts a list where an item ends: what is there is well-formed, but for the length of the whole.
func TestListThatEndsEarlyIsAnError(t *testing.T) {
	t.Parallel()
	item, err := (&metav1.PartialObjectMetadata{ObjectMeta: metadata("a")}).Marshal()
	require.NoError(t, err)
	items := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), item)
	for name, missing := range map[string]int{"nothing is missing": 0, "one byte": 1, "an item": len(items), "a large rest": 17 << 20, "a huge rest": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := protowire.AppendTag([]byte("k8s\x00"), 2, protowire.BytesType)
			body = append(protowire.AppendVarint(body, uint64(len(items)+missing)), items...)
			list, err := wire.ReadList(bytes.NewReader(body), ours())
			if missing == 0 {
				require.NoError(t, err)
				assert.Len(t, list.Items, 1)
				return
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
	}
}

// TestFieldsStayWithinTheList has an item that is longer than the list it is in.
func TestFieldsStayWithinTheList(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string][]byte{
		"a field longer than the rest": {0x12, 0x7f, 0x00},
		"a number that has no end":     {0x12, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := protowire.AppendTag([]byte("k8s\x00"), 2, protowire.BytesType)
			body = append(protowire.AppendBytes(body, inner), bytes.Repeat([]byte{1}, 1000)...)
			_, err := wire.ReadList(bytes.NewReader(body), ours())
			require.Error(t, err)
		})
	}
}

// TestLengthBeyondAnyResponse has lengths that are negative as signed numbers: one of them stands for no length at all.
func TestLengthBeyondAnyResponse(t *testing.T) {
	t.Parallel()
	item, err := (&metav1.PartialObjectMetadata{ObjectMeta: metadata("a")}).Marshal()
	require.NoError(t, err)
	items := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), item)
	for _, field := range []protowire.Number{1, 2} {
		for _, length := range []uint64{math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
			body := protowire.AppendTag([]byte("k8s\x00"), field, protowire.BytesType)
			body = append(protowire.AppendVarint(body, length), items...)
			_, err := wire.ReadList(bytes.NewReader(body), ours())
			require.Error(t, err, "field %d of %d bytes", field, length)
		}
	}
}

func TestFillTakesTheLimits(t *testing.T) {
	t.Parallel()
	const largest = 16 << 20
	for n, ok := range map[int64]bool{-1: false, 0: true, 1: true, largest: true, largest + 1: false, 1 << 32: false} {
		var buffer wire.Buffer
		message, err := buffer.Fill(endless{}, n)
		assert.Equal(t, ok, err == nil, "%d bytes: %v", n, err)
		if ok {
			assert.Len(t, message, int(n))
		}
	}
}

func TestReadAll(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 8 << 10, 8<<10 + 1, 64<<10 - 1, 64<<10 + 1, 1 << 20} {
		sent := bytes.Repeat([]byte{7}, size)
		var buffer wire.Buffer
		admitted := 0
		got, err := buffer.ReadAll(iotest.HalfReader(bytes.NewReader(sent)), func() error { admitted++; return nil })
		require.NoError(t, err)
		assert.Equal(t, size > 64<<10, admitted == 1, "a large one is admitted once: %d of %d bytes", admitted, size)
		assert.Equal(t, sent, append([]byte{}, got...))
		buffer.Clear()
		assert.Equal(t, make([]byte, size), append([]byte{}, got...))
	}
	var buffer wire.Buffer
	free := func() error { return nil }
	_, err := buffer.ReadAll(iotest.ErrReader(io.ErrClosedPipe), free)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = buffer.ReadAll(io.LimitReader(endless{}, 16<<20+1), free)
	require.ErrorContains(t, err, "a response of more than")
	buffer = wire.Buffer{}
	_, err = buffer.ReadAll(endless{}, func() error { return context.DeadlineExceeded })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// FuzzRead feeds anything to all readers: none panics, and what they accept they read as the generated code does. They
// accept less: that one overlooks unbalanced groups, which no Kubernetes object has.
func FuzzRead(f *testing.F) {
	f.Add(encode(f, &corev1.Secret{ObjectMeta: metadata("db"), Data: map[string][]byte{"a": {1}}}))
	f.Add(encode(f, &corev1.ConfigMap{ObjectMeta: metadata("db"), BinaryData: map[string][]byte{"a": {1}}}))
	f.Add(encode(f, &metav1.PartialObjectMetadataList{
		Items: []metav1.PartialObjectMetadata{{ObjectMeta: metadata("db")}},
	}))
	f.Add(frame(f, watch.Added, &metav1.PartialObjectMetadata{ObjectMeta: metadata("db")}))
	f.Add([]byte("k8s\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = wire.ReadList(bytes.NewReader(data), ours())
		_, _ = wire.ReadEvent(bytes.NewReader(data), &wire.Buffer{}, ours())
		_, message, err := wire.Object(data)
		if err != nil {
			return
		}
		var generated corev1.Secret
		secret, meta, err := wire.SecretOf(message)
		if err == nil && generated.Unmarshal(message) == nil {
			assert.Len(t, secret.Data, len(generated.Data))
			for key, value := range generated.Data {
				assert.Equal(t, string(value), string(secret.Data[key]), key)
			}
			assert.Equal(t, generated.Name, meta.Name)
			assert.Equal(t, string(generated.UID), meta.UID)
		}
		_, _, _ = wire.ConfigMapOf(message)
	})
}

// What an event costs does not depend on how much its object's annotations say.
func TestCostOfAnEvent(t *testing.T) { //nolint:paralleltest // it counts allocations
	cost := func(size int) float64 {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metadata("db")}
		object.Annotations = map[string]string{"last-applied": strings.Repeat("x", size)}
		data := frame(t, watch.Added, object)
		var buffer wire.Buffer
		r := bytes.NewReader(nil)
		return testing.AllocsPerRun(100, func() {
			r.Reset(data)
			if _, err := wire.ReadEvent(r, &buffer, wire.Keep{}); err != nil {
				t.Error(err)
			}
		})
	}
	small, large := cost(10), cost(20_000)
	assert.InDelta(t, small, large, 0)
	assert.LessOrEqual(t, large, 12.0)
}

func BenchmarkReadEvent(b *testing.B) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metadata("db")}
	object.Annotations = map[string]string{"last-applied": strings.Repeat("x", 20_000)}
	data := frame(b, watch.Added, object)
	var buffer wire.Buffer
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ReadEvent(bytes.NewReader(data), &buffer, wire.Keep{}); err != nil {
			b.Fatal(err)
		}
	}
}
