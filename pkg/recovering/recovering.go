// Package recovering keeps a panic in a goroutine from ending the process.
//
// An HTTP server and controller-runtime recover in their own goroutines only. A request that begins goroutines of its own would end the
// process with a panic in one of them, and with it the requests of all others.
package recovering

import "fmt"

// Func returns a function that does the same as another one, and returns a panic in it as an error.
func Func(of func() error) func() error {
	return func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("panic: %v", cause)
			}
		}()
		return of()
	}
}
