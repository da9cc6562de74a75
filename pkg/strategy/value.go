package strategy

import (
	"crypto/sha1" //nolint:gosec // the digest that Reloader writes; nothing is proven by it
	"encoding/hex"
	"math"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// valueSize is the length of a value in hex digits: that of SHA-1.
const valueSize = 2 * sha1.Size

// Value returns what stands for the content of an object: the SHA-1 as Reloader computes it, where it was computed, else
// as many digits of the Entry, which is keyed: guesses of a Secret can be tested with a plain digest in a pod spec. The empty
// content stands for an absent object. False where the content was not read.
func Value(state digest.State, key digest.KeyID) (string, bool) {
	if state.Absent {
		sum := sha1.Sum(nil) //nolint:gosec // see above
		return hex.EncodeToString(sum[:]), true
	}
	if state.SHA1 != "" {
		return state.SHA1, true
	}
	entry, read := state.Entry(key)
	return hex.EncodeToString(entry[:])[:valueSize], read
}

// maxVariables is how many variables a pod template may have. A process may have some hundred kilobytes of environment.
const maxVariables = 100

// WithVariable returns the Fields of a template with a variable set to a value: the variable of that name wherever it is,
// as Reloader does, else a new one at the end of the environment of a container that can hold it.
func (f Fields) WithVariable(template map[string]any, container string, ref reference.Ref, value string) Fields {
	f.Variables = slices.Clone(f.Variables)
	name := VariableName(ref)
	if i := f.index(name); i >= 0 {
		f.Variables[i].Value = value
		return f
	}
	if len(f.Variables) >= maxVariables {
		return f
	}
	f.Variables = append(f.Variables, Variable{Container: container, Index: math.MaxInt, Name: name, Value: value})
	return f.On(template)
}

// WithoutVariable returns the Fields of a template without the variable of an object.
func (f Fields) WithoutVariable(ref reference.Ref) Fields {
	i := f.index(VariableName(ref))
	if i < 0 {
		return f
	}
	return f.without(i)
}

// without returns the Fields without one variable: those behind it in its container move up.
func (f Fields) without(i int) Fields {
	gone := f.Variables[i]
	f.Variables = slices.Delete(slices.Clone(f.Variables), i, i+1)
	for j, v := range f.Variables {
		if v.Container == gone.Container && v.Index > gone.Index {
			f.Variables[j].Index--
		}
	}
	return f
}
