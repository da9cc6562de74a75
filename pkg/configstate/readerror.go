package configstate

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// ReadError says that one config object could not be read.
type ReadError struct {
	Namespace string
	Ref       reference.Ref
	Err       error // forbidden, a timeout, … ; never that there is no such object, which is a state
}

// Error names the object and the cause.
func (e *ReadError) Error() string {
	return fmt.Sprintf("read %s in namespace %s: %v", e.Ref, e.Namespace, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error {
	return e.Err
}

// ReadErrors returns the single errors within what ReadLive or ReadIfChanged returned, one for each Ref that failed.
func ReadErrors(err error) []*ReadError {
	//nolint:errorlint // it walks the tree itself: errors.As would find the first one only
	switch e := err.(type) {
	case *ReadError:
		return []*ReadError{e}
	case interface{ Unwrap() error }:
		return ReadErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var failed []*ReadError
		for _, err := range e.Unwrap() {
			failed = append(failed, ReadErrors(err)...)
		}
		return failed
	}
	return nil
}

// join joins errors in the order of their Refs, so that the same failures have the same text whichever came first: a
// failure is reported again only if its text differs.
func join(failed []*ReadError) error {
	if len(failed) == 0 {
		return nil
	}
	slices.SortFunc(failed, func(a, b *ReadError) int { return a.Ref.Compare(b.Ref) })
	return joined(failed)
}

// joined are several errors, whose text is about as long as that of a few: it is kept and logged for each workload.
type joined []*ReadError

// mostNamed is how many further objects the text names.
const mostNamed = 7

// Error is one of the errors, the first that the API server has answered if there is one, with the names of other objects.
func (e joined) Error() string {
	var answer apierrors.APIStatus
	shown := max(slices.IndexFunc(e, func(one *ReadError) bool { return errors.As(one, &answer) }), 0)
	others := make([]reference.Ref, 0, len(e)-1)
	for n, one := range e {
		if n != shown {
			others = append(others, one.Ref)
		}
	}
	text := e[shown].Error()
	if len(others) > 0 {
		text += "; the same failed for " + reference.List(others, mostNamed)
	}
	return text
}

// Unwrap returns the single errors.
func (e joined) Unwrap() []error {
	errs := make([]error, 0, len(e))
	for _, one := range e {
		errs = append(errs, one)
	}
	return errs
}
