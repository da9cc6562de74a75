// Package strategy knows what Stakater's Reloader writes on a pod template when it reloads, so that a reload of this
// program can write the same. The strategy env-vars writes the environment variable STAKATER_<NAME>_<KIND> in the
// container that uses the object. The strategy annotations writes the annotation last-reloaded-from.
//
// It is one of the pure packages, above digest and workload and below stamp, which decides when these fields change. They
// decide nothing themselves: the config-hash and the Record do.
package strategy

import (
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// prefix begins the name of every variable.
const prefix = "STAKATER_"

// VariableName returns the name of the environment variable of a config object: STAKATER_, the name of the object in upper
// case, and its kind. A run of other characters than letters and digits becomes one underscore; a run at the beginning is
// dropped. Several objects can have the same name of a variable, as in Reloader.
func VariableName(ref reference.Ref) string {
	var b strings.Builder
	b.WriteString(prefix)
	separated := true
	for _, c := range []byte(strings.ToUpper(ref.Name)) {
		switch {
		case isUpper(c):
			b.WriteByte(c)
			separated = false
		case !separated:
			b.WriteByte('_')
			separated = true
		}
	}
	return b.String() + "_" + kindName(ref.Kind)
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// kindName returns a kind as Reloader writes it, e.g. CONFIGMAP.
func kindName(kind reference.Kind) string { return strings.ToUpper(string(kind)) }

// isVariable reports whether an environment variable has a name that VariableName returns for some object.
func isVariable(name string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || strings.ContainsFunc(rest, func(r rune) bool { return r != '_' && (r > 'Z' || !isUpper(byte(r))) }) {
		return false
	}
	return slices.ContainsFunc([]string{"_CONFIGMAP", "_SECRET", "_SECRETPROVIDERCLASS"}, func(suffix string) bool {
		return strings.HasSuffix(rest, suffix)
	})
}
