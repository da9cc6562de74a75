package apiserver

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// valuesInto sets the struct that into points to, to what a decoded JSON object says, as runtime.DefaultUnstructuredConverter
// does. It takes a fraction of the time, since it looks only at the fields that the object has, and finds out once what must be
// known about a type. What is not of the usual form is left to the library, the errors included.
func valuesInto(values world.Object, into any) error {
	v := reflect.ValueOf(into).Elem()
	v.SetZero()
	if fillerOf(v.Type())(values, v) {
		return nil
	}
	v.SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(values, into) //nolint:wrapcheck // it stands in for the library
}

// filler sets an empty value to what a decoded JSON value, which is not nil, says. It is false where the library must decide.
type filler func(from any, into reflect.Value) bool

// memberField is a field of a struct, or of a struct that is inlined in it.
type memberField struct {
	index []int
	fill  filler
}

// members has the fields of struct types by their names in JSON; it depends on nothing else.
var members sync.Map

func membersOf(t reflect.Type) map[string]memberField {
	if known, ok := members.Load(t); ok {
		found, _ := known.(map[string]memberField)
		return found
	}
	fields := map[string]memberField{}
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
		case tag == "" && (f.Anonymous || slices.Contains(strings.Split(options, ","), "inline")):
			for name, inner := range membersOf(f.Type) {
				fields[name] = memberField{append(slices.Clone(f.Index), inner.index...), inner.fill}
			}
		case tag == "":
			fields[f.Name] = memberField{f.Index, fillerOf(f.Type)}
		default:
			fields[tag] = memberField{f.Index, fillerOf(f.Type)}
		}
	}
	members.Store(t, fields)
	return fields
}

func fillerOf(t reflect.Type) filler {
	if fill := scalarFiller(t); fill != nil {
		return fill
	}
	if t == reflect.TypeFor[metav1.Time]() {
		return fillTime
	}
	if t == reflect.TypeFor[*metav1.Time]() {
		return pointerFiller(t, fillTime)
	}
	if custom := value.TypeReflectEntryOf(t); custom.CanConvertFromUnstructured() {
		return func(from any, into reflect.Value) bool {
			return custom.FromUnstructured(reflect.ValueOf(from), into) == nil
		}
	}
	switch t.Kind() { //nolint:exhaustive // the library decides about the others
	case reflect.Pointer:
		return pointerFiller(t, fillerOf(t.Elem()))
	case reflect.Struct:
		return fillStruct
	case reflect.Map:
		return mapFiller(t)
	case reflect.Slice:
		return sliceFiller(t)
	}
	return func(any, reflect.Value) bool { return false }
}

// scalarFiller returns nil for a type that may have parts.
func scalarFiller(t reflect.Type) filler {
	switch t.Kind() {
	case reflect.String:
		return func(from any, into reflect.Value) bool {
			text, ok := from.(string)
			into.SetString(text)
			return ok
		}
	case reflect.Bool:
		return func(from any, into reflect.Value) bool {
			b, ok := from.(bool)
			into.SetBool(b)
			return ok
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(from any, into reflect.Value) bool {
			n, ok := from.(int64)
			if !ok || into.OverflowInt(n) {
				return false
			}
			into.SetInt(n)
			return true
		}
	default:
		return nil
	}
}

func fillTime(from any, into reflect.Value) bool {
	text, ok := from.(string)
	if !ok {
		return false
	}
	at, err := time.Parse(time.RFC3339, text)
	into.Set(reflect.ValueOf(metav1.Time{Time: at.Local()}))
	return err == nil
}

func pointerFiller(t reflect.Type, elem filler) filler {
	return func(from any, into reflect.Value) bool {
		into.Set(reflect.New(t.Elem()))
		return elem(from, into.Elem())
	}
}

func fillStruct(from any, into reflect.Value) bool {
	object, ok := from.(map[string]any)
	if !ok {
		return false
	}
	fields := membersOf(into.Type())
	for name, value := range object {
		if f, ok := fields[name]; ok && value != nil && !f.fill(value, into.FieldByIndex(f.index)) {
			return false
		}
	}
	return true
}

func mapFiller(t reflect.Type) filler {
	if t == reflect.TypeFor[map[string]string]() {
		return fillTexts
	}
	elem := fillerOf(t.Elem())
	return func(from any, into reflect.Value) bool {
		object, ok := from.(map[string]any)
		if !ok || object == nil {
			return ok
		}
		into.Set(reflect.MakeMapWithSize(t, len(object)))
		for name, value := range object {
			made := reflect.New(t.Elem()).Elem()
			if value != nil && !elem(value, made) {
				return false
			}
			into.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), made)
		}
		return true
	}
}

func fillTexts(from any, into reflect.Value) bool {
	object, ok := from.(map[string]any)
	if !ok || object == nil {
		return ok
	}
	texts := make(map[string]string, len(object))
	for name, value := range object {
		text, ok := value.(string)
		if !ok {
			return false
		}
		texts[name] = text
	}
	into.Set(reflect.ValueOf(texts))
	return true
}

func sliceFiller(t reflect.Type) filler {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(from any, into reflect.Value) bool {
			text, ok := from.(string)
			if !ok {
				return false
			}
			data, err := base64.StdEncoding.DecodeString(text)
			into.SetBytes(data)
			return err == nil
		}
	}
	elem := fillerOf(t.Elem())
	return func(from any, into reflect.Value) bool {
		list, ok := from.([]any)
		if !ok || list == nil {
			return ok
		}
		into.Set(reflect.MakeSlice(t, len(list), len(list)))
		for n, value := range list {
			if value != nil && !elem(value, into.Index(n)) {
				return false
			}
		}
		return true
	}
}
