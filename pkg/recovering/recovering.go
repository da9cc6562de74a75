// Package recovering keeps a panic in a goroutine from ending the process.
//
// An HTTP server and controller-runtime recover in their own goroutines only. A request that begins goroutines of its own would end the
// process with a panic in one of them, and with it the requests of all others.
package recovering

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// Panic is the error of a function that panicked. Its text goes to users, so it has no stack.
type Panic struct {
	Cause any
	Stack []byte
}

// Error names the cause.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Cause) }

// Func returns a function that does the same as another one, and returns a panic in it as an error, a Panic.
func Func(of func() error) func() error {
	return func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = &Panic{cause, debug.Stack()}
			}
		}()
		return of()
	}
}

// Log writes the stack to a log where an error is a Panic, and reports whether it is one.
func Log(log logr.Logger, err error) bool {
	var found *Panic
	if !errors.As(err, &found) {
		return false
	}
	log.Error(err, "a read panicked; it counts as failed", "stack", string(found.Stack))
	return true
}
