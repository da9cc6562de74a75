package configuration

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// DataKey is the key of a ConfigMap's data that holds the configuration.
const DataKey = "config.yaml"

// Location says where a configuration is: in a ConfigMap or in a file. The zero value is nowhere.
type Location struct {
	// Namespace and Name are those of the ConfigMap.
	Namespace, Name string
	// Path is that of the file.
	Path string
}

// configMapPrefix makes the text form of a Location that of a ConfigMap.
const configMapPrefix = "configmap:"

// ParseLocation reads configmap:NAMESPACE/NAME, or the path of a file; an empty text is nowhere. The error says all that
// is wrong with the name of a ConfigMap. A file whose name begins with "configmap:" is named with ./ before it.
func ParseLocation(text string) (Location, error) {
	name, ok := strings.CutPrefix(text, configMapPrefix)
	if !ok {
		return Location{Path: text}, nil
	}
	namespace, name, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Location{}, fmt.Errorf("%s: want configmap:NAMESPACE/NAME, or the path of a file", reference.Quote(text))
	}
	var wrong []error
	if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
		wrong = append(wrong, fmt.Errorf("%s is not a valid namespace name: %s", reference.Quote(namespace), strings.Join(faults, ", ")))
	}
	if err := reference.ValidName(name); err != nil {
		wrong = append(wrong, err)
	}
	if len(wrong) > 0 {
		return Location{}, errors.New(reference.OneLine(errors.Join(wrong...).Error()))
	}
	return Location{Namespace: namespace, Name: name}, nil
}

// IsZero reports whether there is no configuration.
func (l Location) IsZero() bool { return l == Location{} }

// String returns the text form that ParseLocation reads.
func (l Location) String() string {
	if l.Name != "" {
		return configMapPrefix + l.Namespace + "/" + l.Name
	}
	return l.Path
}
