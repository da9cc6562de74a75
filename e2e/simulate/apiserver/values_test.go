package apiserver

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fillIn sets every field below v, lists and maps with one entry.
func fillIn(v reflect.Value, depth int) {
	at := metav1.NewTime(time.Date(2000, 1, 2, 3, 4, 5, 6000, time.UTC))
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = at
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(at.Time)
		return
	case *resource.Quantity:
		*p = resource.MustParse("100m")
		return
	case *intstr.IntOrString:
		*p = intstr.FromString("25%")
		if depth%2 == 1 {
			*p = intstr.FromInt32(1)
		}
		return
	case *metav1.FieldsV1:
		p.SetRawBytes([]byte(`{"f:metadata":{}}`))
		return
	case *runtime.RawExtension:
		p.Raw = []byte(`{"a":[1,"b"]}`)
		return
	}
	if depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillIn(v.Index(0), depth-1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		entry := reflect.New(v.Type().Elem()).Elem()
		fillIn(entry, depth-1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), entry)
	case reflect.Struct:
		for n := range v.NumField() {
			if v.Field(n).CanSet() {
				fillIn(v.Field(n), depth-1)
			}
		}
	}
}

func TestValuesAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.Kind+" "+k.Group, func(t *testing.T) {
			t.Parallel()
			for depth := range 14 {
				o := k.make()
				fillIn(reflect.ValueOf(o).Elem(), depth)
				want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				require.NoError(t, err)
				got := toValues(o)
				assert.Equal(t, want, got)
				encoded, err := json.Marshal(got)
				require.NoError(t, err)
				assert.NotEmpty(t, encoded)
			}
		})
	}
}

func TestObjectsOfValuesAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.Kind+" "+k.Group, func(t *testing.T) {
			t.Parallel()
			for depth := range 14 {
				o := k.make()
				fillIn(reflect.ValueOf(o).Elem(), depth)
				values := toValues(o)
				assert.True(t, fillerOf(reflect.TypeOf(o).Elem())(values, reflect.New(reflect.TypeOf(o).Elem()).Elem()), "the library is not needed")
				assertSameObject(t, k, values)
				if depth > 4 {
					continue // the rest takes time, and shows nothing new
				}
				for _, other := range []any{
					nil, "other", true, int64(-5), 1.5, 2.0,
					[]any{},
					[]any{nil},
					[]any(nil),
					map[string]any{},
					map[string]any{"other": nil},
					map[string]any(nil),
				} {
					replaced(values, other, func() { assertSameObject(t, k, values) })
				}
			}
		})
	}
}

// assertSameObject checks that the library makes the same of decoded JSON.
func assertSameObject(t *testing.T, k *kind, values map[string]any) {
	t.Helper()
	want, got := k.make(), k.make()
	wantErr := runtime.DefaultUnstructuredConverter.FromUnstructured(values, want)
	err := valuesInto(values, got)
	require.Equal(t, wantErr == nil, err == nil, "%v, %v", wantErr, err)
	if err == nil {
		require.Equal(t, want, got)
	}
}

// replaced calls check with each value below replaced by another one, one after the other.
func replaced(value, other any, check func()) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = other
			check()
			value[name] = inner
			replaced(inner, other, check)
		}
	case []any:
		for n, inner := range value {
			value[n] = other
			check()
			value[n] = inner
			replaced(inner, other, check)
		}
	}
}
