// Package repository checks the repository itself rather than what it is for: that every file has its license, that the chart
// installs what the manifests install, and that what the documents name exists. It imports nothing of
// the program.
package repository
