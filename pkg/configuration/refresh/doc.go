// Package refresh keeps the structured configuration in force while the program runs: it watches where the configuration is,
// applies what is valid and rejects what is not.
//
//	ConfigMap (watch.Single) ─┐
//	                          ├─ Content ─► Applier ─► configuration.Parse ─┬─ valid ───► Kinds ─► webhook, loop, caches
//	file (polled) ────────────┘                                             └─ invalid ─► Warning Event, log, metric
//
// It belongs to the shell of the program. What a configuration may say is decided by the pure package above it; what a new
// kind of workload means is the business of those who follow Kinds, and neither webhook nor loop is known here.
package refresh
