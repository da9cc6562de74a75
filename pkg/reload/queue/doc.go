// Package queue has the workloads that the loop looks at next: each once, what is urgent first, but nothing for ever behind what is
// more urgent. A standby queues nothing.
package queue
