package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/pod-reloader/pod-reloader/"

// goCommand runs in the place of go. Gremlins runs the mutants in covered code, but Go's coverage leaves some expressions out: they
// are added to the profile. The timeout of a mutant is a multiple of the time of that run. It must also cover the time to compile and link
// the mutant on a busy machine, which the cache can spare that run: so that run takes 5 s at least. Gremlins expects exit code 2 if a mutant
// does not compile, but go test exits with 1 then.
const goCommand = `#!/bin/sh
if test "$2 $3" = "-cover -coverprofile"; then
	"$MUTATE_GO" "$@" && cat "$MUTATE_UNCOUNTED" >>"$4" && sleep 5
	exit
fi
out=$("$MUTATE_GO" "$@" 2>&1)
code=$?
case $out in *"[build failed]"*) code=2 ;; esac
printf '%s\n' "$out"
exit $code
`

// shim writes goCommand to bin, and returns the environment in which it runs in the place of go.
func shim(bin, tree, dir string) ([]string, error) {
	program, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	blocks, err := uncounted(tree, dir)
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(bin, "uncounted")
	if err := os.WriteFile(profile, blocks, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(goCommand), 0o700); err != nil {
		return nil, err
	}
	return []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "MUTATE_GO=" + program, "MUTATE_UNCOUNTED=" + profile,
	}, nil
}

// uncounted returns the operators below a directory that Go's coverage leaves out, as covered blocks of a coverage profile.
func uncounted(tree, dir string) ([]byte, error) {
	var blocks bytes.Buffer
	err := fs.WalkDir(os.DirFS(tree), dir, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, filepath.Join(tree, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, pos := range uncountedIn(parsed) {
			at := files.Position(pos)
			fmt.Fprintf(&blocks, "%s%s:%d.%d,%d.%d 1 1\n", module, file, at.Line, at.Column, at.Line, at.Column)
		}
		return nil
	})
	return blocks.Bytes(), err
}

// uncountedIn returns the operators of a file that are outside of functions, in a condition of a switch, or behind a function
// literal in a statement.
func uncountedIn(file *ast.File) []token.Pos {
	var found []token.Pos
	for _, declared := range file.Decls {
		if general, ok := declared.(*ast.GenDecl); ok {
			found = append(found, operators(general)...)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, condition := range n.List {
				found = append(found, operators(condition)...)
			}
		case *ast.BlockStmt:
		case ast.Stmt:
			if literal := firstLiteral(n); literal.IsValid() {
				found = append(found, slices.DeleteFunc(operators(n), func(at token.Pos) bool { return at < literal })...)
			}
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// operators returns the operators of a node, without those of functions and blocks in it.
func operators(of ast.Node) []token.Pos {
	var found []token.Pos
	ast.Inspect(of, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.BlockStmt:
			return false
		case *ast.BinaryExpr:
			found = append(found, n.OpPos)
		case *ast.UnaryExpr:
			found = append(found, n.OpPos)
		}
		return true
	})
	return found
}

// firstLiteral returns the position of the first function literal of a statement, without those of blocks in it.
func firstLiteral(of ast.Stmt) token.Pos {
	first := token.NoPos
	ast.Inspect(of, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.FuncLit:
			if !first.IsValid() {
				first = n.Pos()
			}
			return false
		}
		return true
	})
	return first
}
