// Package docs checks the documentation. Its tests run every command of README.md and docs/ on a real control plane,
// compile and run every Go example, and let the API server judge every manifest. They follow every link, and look for
// every flag, metric, Event and warning of the program in the pages that must name it.
//
// What a page's author has to know: a fenced block is sh, go, yaml, text or mermaid. The blocks of a page are run in their
// order, each by a shell of its own in a directory that has manifests/ and chart/, as the administrator of a cluster that
// pod-reloader is installed in (docs/installing.md: that has cert-manager). A yaml block that begins with "# NAME.yaml" is
// stored under that name. A Go program is stored as "program", for steps after it.
//
// HTML comments, which the page does not show, say the rest, each on lines of its own:
//
//	<!-- prints: TEXT -->        after a block: its output has this text, and those of further comments in their order
//	<!-- fails: TEXT -->         after a block: it fails, and its output has this text
//	<!-- run: COMMAND -->        a step that only the test needs: a namespace, a wait, the end of an example
//	<!-- run ⏎ COMMANDS ⏎ -->    the same on several lines
//	<!-- not run: REASON -->     before a block that cannot be run here; run_test.go lists these exceptions
package docs
