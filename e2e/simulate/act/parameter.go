package act

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// omit is what draw and fallback say of a parameter that is left out. It is not a text that a parameter can have.
const omit = "\xff"

// parameter is one entry of Step.With.
type parameter struct {
	name     string
	required bool
	// fallback is the value of an optional parameter that is not given; omit means that there is none.
	fallback string
	check    func(string) error
	draw     func(r *rand.Rand, on world.Key) string
}

// required makes a parameter that must be given.
func required(name string, check func(string) error, draw func(*rand.Rand, world.Key) string) parameter {
	return parameter{name: name, required: true, check: check, draw: draw}
}

// optional makes a parameter with a fallback, which may be omit.
func optional(name, fallback string, check func(string) error, draw func(*rand.Rand, world.Key) string) parameter {
	return parameter{name: name, fallback: fallback, check: check, draw: draw}
}

// oneOf makes an optional parameter that has one of some values; the first is the fallback.
func oneOf(name string, values ...string) parameter {
	return optional(name, values[0], isOneOf(values...), pick(values...))
}

// number makes a required parameter that is a number, drawn from some values.
func number(name string, least, most int, values ...string) parameter {
	return required(name, isNumber(least, most), pick(values...))
}

// duration makes a required parameter that is a duration, drawn from some values.
func duration(name string, values ...string) parameter {
	return required(name, isDuration, pick(values...))
}

// pick draws one of some values.
func pick(values ...string) func(*rand.Rand, world.Key) string {
	return func(r *rand.Rand, _ world.Key) string { return values[r.IntN(len(values))] }
}

// seldom draws a value one time in n and leaves the parameter out else.
func seldom(n int, draw func(*rand.Rand, world.Key) string) func(*rand.Rand, world.Key) string {
	return func(r *rand.Rand, on world.Key) string {
		if r.IntN(n) > 0 {
			return omit
		}
		return draw(r, on)
	}
}

func isOneOf(values ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(values, value) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", value, strings.Join(values, ", "))
	}
}

func isNumber(least, most int) func(string) error {
	return func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a number from %d to %d", value, least, most)
		}
		return nil
	}
}

// longestPause bounds how long an act takes.
const longestPause = 10 * time.Minute

func isDuration(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > longestPause {
		return fmt.Errorf("%q is not a duration from 0s to %s", value, longestPause)
	}
	return nil
}

// longestText bounds a text parameter, in bytes.
const longestText = 4096

func isText(value string) error {
	if len(value) > longestText || !utf8.ValidString(value) {
		return fmt.Errorf("%d bytes are not a valid text of at most %d bytes", len(value), longestText)
	}
	return nil
}

// isDataKey accepts what may be a key of a config object's data.
func isDataKey(value string) error {
	if value == "" || len(value) > 253 || strings.ContainsFunc(value, notInDataKeys) || strings.HasPrefix(value, "..") || value == "." {
		return fmt.Errorf("%q cannot be a key of data", value)
	}
	return nil
}

func notInDataKeys(c rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c)
}

// isLabel accepts what may be the value of a label.
func isLabel(value string) error {
	if err := isDataKey(value); err != nil || len(value) > 63 || strings.Trim(value, "-_.") != value {
		return fmt.Errorf("%q cannot be the value of a label", value)
	}
	return nil
}

func isDigest(value string) error {
	invalid := func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') }
	if len(value) != 64 || strings.ContainsFunc(value, invalid) {
		return fmt.Errorf("%q is not 64 hex digits", value)
	}
	return nil
}

func drawDigest(r *rand.Rand, _ world.Key) string {
	return fmt.Sprintf("%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
}
