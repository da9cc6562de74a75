package strategy

import (
	"encoding/json"
	"slices"
)

// Annotation is the key of the annotation that the strategy annotations writes on a pod template. No flag of Reloader
// changes it.
const Annotation = "reloader.stakater.com/last-reloaded-from"

// Fields are what Reloader's strategies have written on a pod template. The zero value is none.
type Fields struct {
	// From is the value of the annotation; empty where there is none.
	From string `json:"from,omitempty"`
	// Variables are the environment variables, in the order of the containers and of their environments.
	Variables []Variable `json:"env,omitempty"`
}

// Variable is one environment variable of a container.
type Variable struct {
	Container string `json:"container"`
	// Index is its position in the environment of the container. To a controller, another order is another template.
	Index int    `json:"index"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Empty reports whether there are none.
func (f Fields) Empty() bool { return f.From == "" && len(f.Variables) == 0 }

// Text returns the JSON form; empty for none. Equal Fields have equal texts.
func (f Fields) Text() string {
	if f.Empty() {
		return ""
	}
	text, _ := json.Marshal(f) // texts and numbers always have a JSON form
	return string(text)
}

// Parse reads the JSON form. What is not that form is none.
func Parse(text string) Fields {
	var f Fields
	if json.Unmarshal([]byte(text), &f) != nil {
		return Fields{}
	}
	return f
}

// Value returns the value of a variable, by its name.
func (f Fields) Value(name string) (string, bool) {
	if i := f.index(name); i >= 0 {
		return f.Variables[i].Value, true
	}
	return "", false
}

func (f Fields) index(name string) int {
	return slices.IndexFunc(f.Variables, func(v Variable) bool { return v.Name == name })
}

// Common returns what both have, as the other Fields have it once all else is taken out of their template.
func (f Fields) Common(other Fields) Fields {
	if other.From != f.From {
		other.From = ""
	}
	for i, v := range slices.Backward(other.Variables) {
		if !f.has(v) {
			other = other.without(i)
		}
	}
	return other
}

// has reports whether there is a variable of that name and value.
func (f Fields) has(v Variable) bool {
	return slices.ContainsFunc(f.Variables, func(own Variable) bool { return own.Name == v.Name && own.Value == v.Value })
}

// Edited returns what f has and the other Fields do not have, the positions put aside: the names of variables, and the
// key of the annotation.
func (f Fields) Edited(other Fields) []string {
	var edited []string
	if f.From != "" && f.From != other.From {
		edited = append(edited, Annotation)
	}
	for _, v := range f.Variables {
		if !other.has(v) {
			edited = append(edited, v.Name)
		}
	}
	return edited
}
