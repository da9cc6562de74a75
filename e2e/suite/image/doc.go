// Package image holds the test of the container image: it is built and published as for a release, but on an empty base and
// to a registry on this machine, and what is then in the registry is looked at and run. It needs buildah and the tools of
// make release-tools, so it is apart from the other suites: make image-check runs it. It imports nothing of the program.
package image
