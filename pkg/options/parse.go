package options

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Parse reads arguments into the flags and returns everything that is wrong with them, not just the first.
// pflag.ErrHelp says that help was asked for.
func (f *Flags) Parse(args []string) error {
	var problems []error
	for len(args) > 0 {
		rest, err := f.parseOne(args[0], args[1:])
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		if err != nil {
			problems = append(problems, err)
		}
		args = rest
	}
	return errors.Join(problems...)
}

// parseOne reads one argument and returns those that remain.
func (f *Flags) parseOne(arg string, rest []string) ([]string, error) {
	name, value, hasValue := cutFlag(arg)
	switch name {
	case "":
		return rest, fmt.Errorf("unexpected argument %q; a flag takes its value as --flag=value, and --help lists flags and commands", arg)
	case "help", "h":
		return nil, pflag.ErrHelp
	}
	flag := f.all.Lookup(name)
	if flag == nil {
		if !hasValue && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			rest = rest[1:] // its value, most likely
		}
		return rest, f.unknown(name)
	}
	if !hasValue {
		var err error
		if value, rest, err = valueOf(flag, rest); err != nil {
			return rest, err
		}
	}
	if err := f.set(flag, value); err != nil {
		return rest, fmt.Errorf("--%s: %w", name, err)
	}
	return rest, nil
}

// valueOf returns the value of a flag that has none in its own argument, and the arguments that remain.
func valueOf(flag *pflag.Flag, rest []string) (string, []string, error) {
	optional := flag.NoOptDefVal != ""
	switch {
	case optional && len(rest) > 0 && isValue(flag, rest[0]):
		return rest[0], rest[1:], nil
	case optional:
		return flag.NoOptDefVal, rest, nil
	case len(rest) == 0:
		return "", rest, fmt.Errorf("--%s: a value is missing", flag.Name)
	default:
		return rest[0], rest[1:], nil
	}
}

// isValue reports whether the argument after a flag that needs no value is its value. Some flags are texts in Reloader, and are written
// as two arguments. No other argument can follow a flag.
func isValue(flag *pflag.Flag, arg string) bool {
	if _, text := flag.Value.(*textSwitch); text {
		return !strings.HasPrefix(arg, "-")
	}
	return arg == "true" || arg == "false"
}

// cutFlag splits --name=value, with one dash or two. The name is empty if the argument is no flag.
func cutFlag(arg string) (name, value string, hasValue bool) {
	trimmed, dashed := strings.CutPrefix(arg, "-")
	if !dashed {
		return "", "", false
	}
	return strings.Cut(strings.TrimPrefix(trimmed, "-"), "=")
}

// wanted says in our words what the parsers of pflag expect.
var wanted = map[string]string{
	"bool":     "true or false",
	"duration": "a duration such as 1500ms or 2m",
	"int":      "a number",
}

// set gives a flag a value. The error does not name the flag.
func (f *Flags) set(flag *pflag.Flag, value string) error {
	if f.kept[flag.Name] {
		return nil
	}
	err := f.all.Set(flag.Name, value)
	if err == nil {
		return nil
	}
	if want, ok := wanted[flag.Value.Type()]; ok {
		// pflag leaves a zero behind, which might be out of range and be reported as well.
		_ = flag.Value.Set(flag.DefValue)
		return fmt.Errorf("%q: want %s", value, want)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	return fmt.Errorf("%q: %w", value, err)
}

// unknown names the flag that was probably meant.
func (f *Flags) unknown(name string) error {
	if hint := instead(name); hint != "" {
		return fmt.Errorf("--%s: not supported: %s", name, hint)
	}
	best, distance := "", 3
	f.all.VisitAll(func(known *pflag.Flag) {
		if d := reference.EditDistance(name, known.Name); d < distance {
			best, distance = known.Name, d
		}
	})
	if len(name) == 1 {
		return fmt.Errorf("-%s: unknown flag; --help lists all", name) // of a command, perhaps
	}
	if best == "" {
		return fmt.Errorf("--%s: unknown flag; --help lists all", name)
	}
	return fmt.Errorf("--%s: unknown flag; did you mean --%s?", name, best)
}

// instead returns what to write for a flag that a version of Reloader has and this program does not; empty for other names.
func instead(flag string) string {
	switch flag {
	case "alert-on-reload", "alert-sink", "alert-webhook-url", "alert-additional-info":
		return "set the environment variable " + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	case "alert-proxy":
		return "set the environment variable ALERT_WEBHOOK_PROXY"
	case "alert-structured":
		return "the payload of ALERT_SINK=webhook is always JSON; remove the flag"
	case "watch-namespace":
		return "write --namespaces"
	default:
		return ""
	}
}
