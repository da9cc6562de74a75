package toolchain

import "os"

// ShortLived is the environment of a Go program that ends soon, with some more variables: collecting garbage, and moving between
// processors, would take a part of its processor time, of which tests are short.
func ShortLived(more ...string) []string {
	return append(append(os.Environ(), "GOGC=off", "GOMEMLIMIT=400MiB", "GOMAXPROCS=1"), more...)
}
