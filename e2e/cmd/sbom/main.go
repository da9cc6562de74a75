// Command sbom prints the bill of materials of a Go program, in the JSON format of CycloneDX 1.6, from what the linker has
// recorded in it: the modules that the program consists of and no others, and their checksums as in go.sum.
//
//	go run ./e2e/cmd/sbom -version v1.2.3 dist/pod-reloader-linux-amd64
//
// The output depends on the program and its version alone: it has no date and no serial number.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	version := flag.String("version", "unknown", "version of the program")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: sbom -version VERSION PROGRAM")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *version, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of materials of a program.
func run(program, version string, out io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the build information: %w", err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	sum := sha256.Sum256(content)
	bill, err := describe(info, subject{File: filepath.Base(program), Version: version, SHA256: hex.EncodeToString(sum[:])})
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(bill); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}
