package apiserver

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The conversion to decoded JSON gives what runtime.DefaultUnstructuredConverter gives, in a fraction of its time: what must
// be known about a type is found out once. Every stored version is converted.

// toValues returns the decoded JSON form of a pointer to a struct of the API.
func toValues(part any) world.Object {
	values := world.Object{}
	fieldsOfStruct(reflect.TypeOf(part).Elem()).convert(reflect.ValueOf(part).Elem(), values)
	return values
}

// structFields are the fields of a struct type, those of embedded structs as inlined.
type structFields []structField

type structField struct {
	index     int
	name      string
	omitEmpty bool
	omitZero  func(reflect.Value) bool
	// inlined has the fields of a struct that has no name in JSON.
	inlined structFields
	convert converter
}

// converter returns the decoded JSON form of a value.
type converter func(reflect.Value) any

// structs has what is known of struct types; it depends on nothing else.
var structs sync.Map

func fieldsOfStruct(t reflect.Type) structFields {
	if known, ok := structs.Load(t); ok {
		found, _ := known.(structFields)
		return found
	}
	var fields structFields
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		one := structField{index: f.Index[0], name: tag}
		given := strings.Split(options, ",")
		one.omitEmpty = slices.Contains(given, "omitempty")
		if slices.Contains(given, "omitzero") {
			one.omitZero = value.OmitZeroFunc(f.Type)
		}
		switch {
		case tag == "" && (f.Anonymous || slices.Contains(given, "inline")):
			one.inlined = fieldsOfStruct(f.Type)
		case tag == "":
			one.name = f.Name
			fallthrough
		default:
			one.convert = converterOf(f.Type)
		}
		fields = append(fields, one)
	}
	structs.Store(t, fields)
	return fields
}

func (fields structFields) convert(v reflect.Value, into world.Object) {
	for n := range fields {
		f := &fields[n]
		at := v.Field(f.index)
		switch {
		case f.omitEmpty && isEmpty(at), f.omitZero != nil && f.omitZero(at):
		case f.convert == nil:
			f.inlined.convert(at, into)
		default:
			into[f.name] = f.convert(at)
		}
	}
}

// isEmpty reports what the JSON option omitempty leaves out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// scalarConverter converts the types of the API that are one text or number in JSON, and have no method that says so: the
// general way is to encode each and to decode it again. Every renewal of a lease has two of these. It is nil for other types.
func scalarConverter(t reflect.Type) converter {
	switch t {
	case reflect.TypeFor[metav1.MicroTime]():
		return func(v reflect.Value) any {
			at, _ := v.Interface().(metav1.MicroTime)
			if at.IsZero() {
				return nil
			}
			return at.UTC().Format(metav1.RFC3339Micro)
		}
	case reflect.TypeFor[intstr.IntOrString]():
		return func(v reflect.Value) any {
			value, _ := v.Interface().(intstr.IntOrString)
			if value.Type == intstr.String {
				return value.StrVal
			}
			return int64(value.IntVal)
		}
	case reflect.TypeFor[*metav1.MicroTime](), reflect.TypeFor[*intstr.IntOrString]():
		return pointerConverter(scalarConverter(t.Elem()))
	}
	return nil
}

func converterOf(t reflect.Type) converter {
	if scalar := scalarConverter(t); scalar != nil {
		return scalar
	}
	if custom := value.TypeReflectEntryOf(t); custom.CanConvertToUnstructured() {
		return func(v reflect.Value) any {
			made, err := custom.ToUnstructured(v)
			if err != nil {
				panic(fmt.Errorf("convert %s: %w", v.Type(), err))
			}
			return made
		}
	}
	switch t.Kind() { //nolint:exhaustive // the others go through the default below
	case reflect.String:
		return func(v reflect.Value) any { return v.String() }
	case reflect.Bool:
		return func(v reflect.Value) any { return v.Bool() }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value) any { return v.Int() }
	case reflect.Pointer:
		return pointerConverter(converterOf(t.Elem()))
	case reflect.Struct:
		return func(v reflect.Value) any {
			values := world.Object{}
			fieldsOfStruct(t).convert(v, values)
			return values
		}
	case reflect.Map:
		return mapConverter(converterOf(t.Elem()))
	case reflect.Slice:
		return sliceConverter(t)
	}
	panic(fmt.Errorf("a field of the API is a %s", t))
}

func pointerConverter(elem converter) converter {
	return func(v reflect.Value) any {
		if v.IsNil() {
			return nil
		}
		return elem(v.Elem())
	}
}

func mapConverter(elem converter) converter {
	return func(v reflect.Value) any {
		if v.IsNil() {
			return nil
		}
		if texts, ok := v.Interface().(map[string]string); ok {
			values := make(world.Object, len(texts))
			for key, text := range texts {
				values[key] = text
			}
			return values
		}
		values := make(world.Object, v.Len())
		for entries := v.MapRange(); entries.Next(); {
			values[entries.Key().String()] = elem(entries.Value())
		}
		return values
	}
}

func sliceConverter(t reflect.Type) converter {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(v reflect.Value) any {
			if v.IsNil() {
				return nil
			}
			return base64.StdEncoding.EncodeToString(v.Bytes())
		}
	}
	elem := converterOf(t.Elem())
	return func(v reflect.Value) any {
		if v.IsNil() {
			return nil
		}
		values := make([]any, v.Len())
		for n := range values {
			values[n] = elem(v.Index(n))
		}
		return values
	}
}
