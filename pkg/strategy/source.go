package strategy

import (
	"encoding/json"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Source is what the annotation last-reloaded-from says: the config object that led to the last reload.
type Source struct {
	// Type is CONFIGMAP, SECRET or SECRETPROVIDERCLASS.
	Type      string `json:"type"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Hash is what the variable of the object would have as its value.
	Hash string `json:"hash"`
	// ContainerRefs are the containers that use the object. Reloader names one.
	ContainerRefs []string `json:"containerRefs"`
	// ObservedAt is the time of the reload in Unix seconds.
	ObservedAt int64 `json:"observedAt"`
}

// String returns the value of the annotation.
func (s Source) String() string {
	text, _ := json.Marshal(s) // texts and numbers always have a JSON form
	return string(text)
}

// Is reports whether the annotation is about an object.
func (s Source) Is(ref reference.Ref) bool { return s.Type == kindName(ref.Kind) && s.Name == ref.Name }

// ParseSource reads the value of the annotation. What is none is the zero Source.
func ParseSource(text string) Source {
	var s Source
	if json.Unmarshal([]byte(text), &s) != nil {
		return Source{}
	}
	return s
}

// WithSource returns the Fields with an annotation. Call it for a reload only: another time is another pod template.
func (f Fields) WithSource(s Source) Fields {
	f.From = s.String()
	return f
}

// NewSource returns the Source for an object in a namespace.
func NewSource(ref reference.Ref, namespace, hash, container string) Source {
	return Source{Type: kindName(ref.Kind), Name: ref.Name, Namespace: namespace, Hash: hash, ContainerRefs: []string{container}}
}
