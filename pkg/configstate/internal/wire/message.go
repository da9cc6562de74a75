// Package wire reads just enough of the API server's protobuf to know which config object changed, and what it contains.
//
// configstate reads responses with it. The general decoders of client-go turn every annotation
// into a string and copy every frame two or three times; `kubectl apply` puts the plain text of a Secret into an
// annotation, so that those copies are Secrets all over the heap. Here annotations that are not kept are skipped
// in the buffer, a Secret's values are not copied, and every buffer is cleared after use.
//
// The shapes are those of k8s.io/apimachinery's and k8s.io/api's generated.proto, whose field numbers are stable; tests
// compare with the generated code.
package wire

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// magic precedes every protobuf object of the Kubernetes API; a runtime.Unknown follows.
var magic = [...]byte{'k', '8', 's', 0}

// Meta is what is kept of an object's metadata.
type Meta struct {
	Namespace, Name, UID, ResourceVersion string
	// Annotations and Labels are those that were asked for; nil when there are none.
	Annotations, Labels map[string]string
	// InitialEnd says that this is the bookmark behind the initial events of a streaming list.
	InitialEnd bool
}

// Keep says which annotations to read, by key and value, and which labels, by key. A nil function reads none. What it is called with
// aliases the message: a value that is not kept never becomes a string.
type Keep struct {
	Annotation func(key, value []byte) bool
	Label      func(key string) bool
}

// errTruncated says that a message ends before its own lengths say so.
var errTruncated = errors.New("malformed protobuf")

// fields calls visit for every length-delimited field of a message, in the order of the wire; value aliases message.
// Other fields are skipped: no needed one is a number.
func fields(message []byte, visit func(number int, value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errTruncated
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return errTruncated
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return errTruncated
		}
		message = message[n:]
		if err := visit(int(number), value); err != nil {
			return err
		}
	}
	return nil
}

// Object opens the envelope of one object: its kind and its message, which aliases data. An answer that ends before the message is an
// error: it says nothing of the object.
func Object(data []byte) (kind string, message []byte, err error) {
	if !bytes.HasPrefix(data, magic[:]) {
		return "", nil, errors.New("the response is not protobuf, as was asked for")
	}
	err = fields(data[len(magic):], func(number int, value []byte) error {
		switch number {
		case 1: // Unknown.typeMeta
			return fields(value, func(number int, value []byte) error {
				if number == 2 { // TypeMeta.kind
					kind = string(value)
				}
				return nil
			})
		case 2: // Unknown.raw
			message = value
		}
		return nil
	})
	if err == nil && message == nil {
		err = errTruncated
	}
	if err != nil {
		return "", nil, fmt.Errorf("read the envelope of an object: %w", err)
	}
	return kind, message, nil
}

// SingleItem opens the envelope of a list that has one object at most, and returns its message, which aliases data; false where the list is
// empty.
func SingleItem(data []byte) (message []byte, found bool, err error) {
	_, list, err := Object(data)
	if err != nil {
		return nil, false, err
	}
	err = fields(list, func(number int, value []byte) error {
		if number == 2 { // items
			message, found = value, true
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read a list: %w", err)
	}
	return message, found, nil
}

// MetaOf reads the metadata of a PartialObjectMetadata, ConfigMap or Secret: all have it in their first field.
func MetaOf(message []byte, keep Keep) (Meta, error) {
	var meta Meta
	err := fields(message, func(number int, value []byte) error {
		if number != 1 {
			return nil
		}
		return fields(value, func(number int, value []byte) error {
			return meta.set(number, value, keep)
		})
	})
	if err != nil {
		return Meta{}, fmt.Errorf("read the metadata of an object: %w", err)
	}
	return meta, nil
}

// set takes over one field of an ObjectMeta.
func (m *Meta) set(number int, value []byte, keep Keep) error {
	switch number {
	case 1:
		m.Name = string(value)
	case 3:
		m.Namespace = string(value)
	case 5:
		m.UID = string(value)
	case 6:
		m.ResourceVersion = string(value)
	case 11:
		return put(&m.Labels, value, func(key, _ []byte) bool { return keep.Label != nil && keep.Label(string(key)) })
	case 12:
		return m.annotate(value, keep.Annotation)
	}
	return nil
}

// annotate takes over one annotation if it is to be kept. The value of any other never becomes a string.
func (m *Meta) annotate(message []byte, keep func(key, value []byte) bool) error {
	key, value, err := pair(message)
	if err != nil {
		return err
	}
	if string(key) == metav1.InitialEventsAnnotationKey {
		m.InitialEnd = string(value) == "true"
	}
	return put(&m.Annotations, message, keep)
}

// put takes an entry into a map if it is to be kept.
func put(into *map[string]string, message []byte, keep func(key, value []byte) bool) error {
	key, value, err := pair(message)
	if err != nil || keep == nil || !keep(key, value) {
		return err
	}
	if *into == nil {
		*into = make(map[string]string)
	}
	(*into)[string(key)] = string(value)
	return nil
}

// pair reads one entry of a map; both parts alias message.
func pair(message []byte) (key, value []byte, err error) {
	err = fields(message, func(number int, part []byte) error {
		switch number {
		case 1:
			key = part
		case 2:
			value = part
		}
		return nil
	})
	return key, value, err
}

// SecretOf reads what counts of a Secret. The values of its data alias message: they are gone when that is cleared.
func SecretOf(message []byte) (*corev1.Secret, Meta, error) {
	meta, err := MetaOf(message, Keep{})
	if err != nil {
		return nil, Meta{}, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name}}
	err = fields(message, func(number int, value []byte) error {
		if number == 2 {
			return enter(&secret.Data, value)
		}
		return nil
	})
	if err != nil {
		return nil, Meta{}, fmt.Errorf("read a Secret: %w", err)
	}
	return secret, meta, nil
}

// ConfigMapOf reads what counts of a ConfigMap. The values of its binaryData alias message.
func ConfigMapOf(message []byte) (*corev1.ConfigMap, Meta, error) {
	meta, err := MetaOf(message, Keep{})
	if err != nil {
		return nil, Meta{}, err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name}}
	err = fields(message, func(number int, value []byte) error {
		switch number {
		case 2:
			key, text, err := pair(value)
			if err != nil {
				return err
			}
			if object.Data == nil {
				object.Data = make(map[string]string)
			}
			object.Data[string(key)] = string(text)
		case 3:
			return enter(&object.BinaryData, value)
		}
		return nil
	})
	if err != nil {
		return nil, Meta{}, fmt.Errorf("read a ConfigMap: %w", err)
	}
	return object, meta, nil
}

func enter(values *map[string][]byte, message []byte) error {
	key, value, err := pair(message)
	if err != nil {
		return err
	}
	if *values == nil {
		*values = make(map[string][]byte)
	}
	(*values)[string(key)] = value
	return nil
}
