// Package world has the words that the parts of the simulator share: objects, resources, requests, and what is stored.
//
// The parts are: apiserver (the model of the API server), cluster (the model of the workload controllers and the
// kubelet), act (what users do), oracle (the laws), memnet (the network) and simulate itself, which runs pod-reloader
// among them in fake time. None of them imports a package of the program but simulate, which starts it.
package world
