package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
)

// selected are the flags of a command that is about workloads by their names, or about all of them.
type selected struct {
	all, allNamespaces bool
	selector           string
}

// registerSelected adds the flags.
func (s *selected) registerSelected(flags *pflag.FlagSet) {
	flags.BoolVar(&s.all, "all", false, "all workloads of the namespace")
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "with --all: those of all namespaces")
	flags.StringVarP(&s.selector, "selector", "l", "", "with --all: only workloads with these `labels`")
}

// checkSelected returns the labels that the workloads must have, and what is wrong with the flags where the command line has a number of names.
func (s *selected) checkSelected(names int) (labels.Selector, error) {
	var errs []error
	selector, err := labels.Parse(s.selector)
	if err != nil {
		errs = append(errs, fmt.Errorf("--selector: %q is not a label selector", s.selector))
	}
	switch {
	case s.all == (names > 0):
		errs = append(errs, errors.New("name workloads as KIND/NAME, or use --all"))
	case !s.all && (s.allNamespaces || s.selector != ""):
		errs = append(errs, errors.New("--all-namespaces and --selector need --all"))
	}
	return selector, errors.Join(errs...)
}
