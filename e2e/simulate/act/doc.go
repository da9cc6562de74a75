// Package act is what users do to a cluster: each act is a few plain HTTP requests against a Kubernetes API server.
//
// The requests are those that kubectl, Helm, Argo CD and scripts send, so that the same acts run against the model of the
// API server in fake time and against a real control plane. Setup creates the objects that the acts are about, Catalogue
// has the acts by name for histories to draw from, and Do carries out one step. The package imports nothing of the program.
package act
