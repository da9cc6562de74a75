// Package apiserver is the simulator's model of a Kubernetes API server: an http.Handler with its store, in memory and in
// fake time.
//
// It serves the resources of package world to unchanged clients (client-go, controller-runtime, pod-reloader itself).
// It follows kube-apiserver 1.36 and 1.37 in what such clients can notice. Of writes, these are optimistic concurrency,
// writes that change nothing, generations, defaults, patches of all types, and admission webhooks with their order and
// reinvocation. Of reads, they are watches with bookmarks and streaming lists. Of both, they are content negotiation
// and errors. What it leaves out is listed at the places concerned. The large parts are: Table output, pagination,
// deletion of collections, the scale subresource, graceful deletion of pods, garbage collection, and most of the
// validation.
//
// Package conformance below it plays the same requests on a real API server and compares the answers.
//
// The simulator steers it by the hooks in Options: Gate orders, refuses, drops or cuts requests, Watch holds back events,
// OnCommit and OnReply report what happens to the oracle.
//
// Objects are decoded into the typed structs of k8s.io/api, since these decide which fields exist and what is equal to
// what. A stored version is an item, which never changes and keeps its encodings.
package apiserver
