// Package index finds the workloads that a change of a config object concerns: by the objects that they name, by the patterns
// that they have, and by what has changed shortly before they came. It is filled by the watches of workloads and decides nothing.
package index
