package watch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A resourceVersion expires in normal operation: the server answers 410, and
// client-go lists again. It does so without a pause for a streamed list, also
// where the request names no version that can expire. A server that answers all
// requests with 410, as a gateway may for an endpoint that is gone, would be
// asked for ever, and no error reported.

// isExpired is client-go's condition.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// canExpire reports whether the request names a version.
func canExpire(options metav1.ListOptions) bool {
	return options.ResourceVersion != "" && options.ResourceVersion != "0"
}

// permanent is an error in which client-go finds no expired version and no refused
// connection, so that it treats it as any other: after that of a streamed list it
// lists, after that of a list it pauses, and after that of a watch it does not go on.
type permanent struct{ error }

// Is finds the error all the same.
func (p permanent) Is(target error) bool { return errors.Is(p.error, target) }

const (
	// atOnce is how soon a watch has to end to count as short.
	atOnce = time.Second
	// shortInARow is how many short watches, one after another, are an error where one is none.
	shortInARow = 3
)

// rejected records the error of a request unless a version has expired, and returns
// what client-go is to see of it.
func (s *source) rejected(ctx context.Context, options metav1.ListOptions, err error) error {
	switch {
	case !isExpired(err):
		s.failures.record(ctx, err)
	case canExpire(options):
		s.failures.expired(ctx, err)
	default:
		s.failures.record(ctx, err)
		return permanent{err}
	}
	return err
}

// endedShort counts a short watch, and reports whether there were several in a row.
func (s *source) endedShort() bool {
	return s.short.Add(1) >= shortInARow
}

// expiredWatch records a version that expires again and again: each one was listed
// a moment ago.
func (s *source) expiredWatch(ctx context.Context, err error) {
	if s.endedShort() {
		s.failures.record(ctx, err)
		return
	}
	s.failures.expired(ctx, err)
}
