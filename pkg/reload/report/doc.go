// Package report reports to the users of a workload what was done and why, and what is in the way: by Events, alerts and metrics. A reload is
// reported once, whichever leader made it.
package report
