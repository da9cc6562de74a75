package options

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// textSwitch is a flag for true and false that is a text in Reloader: each value is accepted there, and one that means nothing is off.
// Here it is off as well, and a warning names it, so that the arguments of Reloader's Deployment work as they are.
type textSwitch struct {
	text string
	// detect says that an empty value and "auto" are on: Reloader then looks whether the cluster has the kind.
	detect bool
}

// addSwitch adds a flag that is off by default, and on where it has no value.
func addSwitch(set *pflag.FlagSet, s *textSwitch, name, usage string) {
	s.text = "false"
	set.VarPF(s, name, "", usage).NoOptDefVal = "true"
}

// String, Set and Type make it a pflag.Value.
func (s *textSwitch) String() string         { return s.text }
func (s *textSwitch) Set(value string) error { s.text = value; return nil }
func (s *textSwitch) Type() string           { return "bool" }

// on reports whether the flag is on.
func (s *textSwitch) on() bool {
	on, _ := s.read()
	return on
}

// read returns the value, and whether it is one of those that the flag has.
func (s *textSwitch) read() (on, known bool) {
	word := strings.ToLower(strings.TrimSpace(s.text))
	if word == "" || s.detect && word == "auto" {
		return s.detect, true
	}
	on, err := strconv.ParseBool(word)
	return on, err == nil
}

// On reports whether a flag for true and false that is a text in Reloader is on.
func (f *Flags) On(name string) bool {
	s, ok := f.all.Lookup(name).Value.(*textSwitch)
	return ok && s.on()
}

// Warnings returns what is wrong with settings that have their default for that reason, as in Reloader. Each names the setting and what
// to write. They are no errors of Complete: an installation of Reloader runs with such values.
func (f *Flags) Warnings(env Environment) []error {
	p := problems(f.SharedWarnings())
	f.logs.warnings(&p)
	if value := env.Getenv(metricsCountByNamespace); value != "" && value != "enabled" && value != "disabled" {
		p.variable(metricsCountByNamespace, fmt.Errorf("%s has no effect: write enabled or disabled", reference.Quote(value)))
	}
	// The value is in no message: the variables of alerts are in a Secret.
	if _, known := alertSwitch(env).read(); !known {
		p.variable(alertOnReload, errors.New("it is neither true nor false, and no alerts are posted: write true or false"))
	}
	return p
}

// SharedWarnings are those of Warnings that are about flags, for tools.
func (f *Flags) SharedWarnings() []error {
	var p problems
	f.all.VisitAll(func(flag *pflag.Flag) {
		s, ok := flag.Value.(*textSwitch)
		if !ok {
			return
		}
		if _, known := s.read(); !known {
			p.add(flag.Name, fmt.Errorf("%s is neither true nor false, and has the effect of false: write true or false", reference.Quote(s.text)))
		}
	})
	return p
}

// alertSwitch is the variable that switches alerts on.
func alertSwitch(env Environment) *textSwitch { return &textSwitch{text: env.Getenv(alertOnReload)} }
