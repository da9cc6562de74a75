// Package reference names the configuration objects a workload can depend on, and finds them in a pod spec.
//
// It is one of the lowest of the pure packages: those above it speak in terms of its Ref. It imports the API types, and of this
// project only skim; it knows no client, clock or logger.
package reference

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a config object, in the lower case in which it appears in texts. The kind of a custom resource is its
// name and group; see Custom.
type Kind string

// The kinds of config objects that a pod spec can name.
const (
	ConfigMap Kind = "configmap"
	Secret    Kind = "secret"
	// SecretProviderClass is a kind of the Secrets Store CSI driver. Its content is in SecretProviderClassPodStatuses.
	SecretProviderClass Kind = "secretproviderclass"
)

// Ref is what a workload depends on: one config object, as a whole, in the workload's own namespace. It is comparable
// and serves as a map key.
type Ref struct {
	Kind Kind
	Name string
}

// String returns the text form, such as "configmap/foo". Parse is its inverse.
func (r Ref) String() string {
	return string(r.Kind) + "/" + r.Name
}

// Compare orders by kind, then by name, as slices.SortFunc wants it. Digests and texts depend on this order: it never
// changes.
func (r Ref) Compare(o Ref) int {
	if c := cmp.Compare(r.Kind, o.Kind); c != 0 {
		return c
	}
	return cmp.Compare(r.Name, o.Name)
}

// Parse reads the text form of a Ref. The error says which part is wrong; it quotes a bounded piece of the input.
func Parse(s string) (Ref, error) {
	kind, name, found := strings.Cut(s, "/")
	if !found {
		return Ref{}, fmt.Errorf("%s is not of the form kind/name", Quote(s))
	}
	switch k := Kind(kind); {
	case k == ConfigMap, k == Secret, k == SecretProviderClass:
	case k.Custom() && IsName(kind):
	default:
		return Ref{}, fmt.Errorf("%s has the unknown kind %s: use %q, %q, %q or the name of a custom resource with its group",
			Quote(s), Quote(kind), ConfigMap, Secret, SecretProviderClass)
	}
	if err := ValidName(name); err != nil {
		return Ref{}, err
	}
	return Ref{Kind: Kind(kind), Name: name}, nil
}

// MaxTracked is how many Refs one workload can track.
const MaxTracked = 1000

// maxName is the API server's limit for the name of a ConfigMap or a Secret, in bytes.
const maxName = 253

// ValidName reports whether a ConfigMap or a Secret can have this name: the API server admits DNS-1123 subdomains of at
// most 253 bytes. The error quotes the name (bounded) and says what is wrong with it. It takes one pass.
func ValidName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name %s is %d bytes long: the limit is %d", Quote(name), len(name), maxName)
	}
	for i, r := range name {
		if !nameCharacter(r) {
			return fmt.Errorf("the name %s has %s at position %d: only a-z, 0-9, '-' and '.' are allowed",
				Quote(name), character(r), i+1)
		}
		if alphanumeric(r) {
			continue
		}
		if i == 0 || i == len(name)-1 {
			return fmt.Errorf("the name %s must start and end with a letter or a digit", Quote(name))
		}
		if previous := rune(name[i-1]); !alphanumeric(previous) && (r == '.' || previous == '.') {
			return fmt.Errorf("the name %s has %q beside %q: a letter or a digit must stand on either side of a '.'",
				Quote(name), previous, r)
		}
	}
	return nil
}

// IsName reports whether ValidName has nothing to say about a name, without the cost of saying it.
func IsName(name string) bool {
	if len(name) > maxName {
		return false
	}
	previous := '.'
	for i := range len(name) {
		c := rune(name[i])
		switch {
		case alphanumeric(c):
		case c == '-' && previous != '.', c == '.' && alphanumeric(previous):
		default:
			return false
		}
		previous = c
	}
	return alphanumeric(previous)
}

func nameCharacter(r rune) bool {
	return alphanumeric(r) || r == '-' || r == '.'
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
}

// character shows one rune of a user's text, whatever it is.
func character(r rune) string {
	if r == utf8.RuneError {
		return "an unreadable character"
	}
	return strconv.QuoteRune(r)
}

// maxQuoted is how many bytes of a user's text a message repeats.
const maxQuoted = 64

// Quote makes a user's text fit for a message: an error, an admission warning, an Event, a log line. The text is in
// double quotes, and characters that do not print are escaped. At most 64 bytes of it are kept, so that a hostile
// annotation of 256 KiB does not become a message of 256 KiB.
func Quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	end := maxQuoted
	for end > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strconv.Quote(s[:end]) + "…"
}

// Shorten bounds what a message repeats of a text that it does not quote: at most 64 bytes of it.
func Shorten(text string) string { return Cut(text, maxQuoted) }

// Cut shortens a text to so many bytes, at a whole character, and ends it with an ellipsis.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
