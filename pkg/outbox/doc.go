// Package outbox writes Events to the API server. An Event is written until the API server has it, or until it is not worth
// writing any more: an API server that refuses Events, or that does not answer, holds up neither the caller nor the Events
// of other namespaces. It knows nothing of workloads; package reload decides what is reported.
package outbox
