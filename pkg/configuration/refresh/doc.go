// Package refresh keeps the structured configuration in force while the program runs: it watches where the configuration is,
// applies what is valid and rejects what is not.
//
//	ConfigMap (watch.Single) ─┐
//	                          ├─ Content ─► Applier ─► configuration.Parse ─┬─ valid ───► Kinds ─► webhook, loop, caches
//	file (polled) ────────────┘                                             └─ invalid ─► Warning Event, log, metric
//
// It belongs to the shell of the program. The pure package configuration, above it, decides which configurations are valid.
// The webhook, the loop and the caches follow Kinds and handle a new kind of workload; this package imports none of them.
package refresh
