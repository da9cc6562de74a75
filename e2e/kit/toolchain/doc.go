// Package toolchain builds the programs that tests and development need (a Kubernetes control
// plane, KWOK, Helm, the linter …) from Go modules pinned in e2e/tools/<tool>/go.mod, and nothing
// else: no container engine and no download of executables.
//
// Each tool is a module of its own, so that nothing of it enters the requirements of the program.
// What is built lands in bin/<tool>/ at the root of the repository and stays there until the pin
// changes. Several test processes may ask at once; one builds, the others wait for it.
package toolchain
