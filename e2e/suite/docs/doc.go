// Package docs checks that the documentation tells the truth: its tests run every command of README.md and docs/ on a real
// control plane, compile and run every Go example, let the API server judge every manifest, follow every link, and look
// for every flag, metric, Event and warning of the program in the pages that must name it.
//
// What a page's author has to know: a fenced block is sh, go, yaml, text or mermaid. The blocks of a page are run in their
// order, each by a shell of its own in a directory that has manifests/ and chart/, as the administrator of a cluster that
// pod-reloader is installed in (docs/installing.md: that has cert-manager). A yaml block that begins with "# NAME.yaml" is
// stored under that name. In sh and go, a comment "prints: TEXT" announces output, in this order, and "fails: TEXT" that
// of a block that is meant to fail. A block that cannot be run here has the line <!-- not run: REASON --> before it and
// stands in the list of exceptions in run_test.go.
package docs
