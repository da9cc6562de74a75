// Package check compares the models of the simulator with a real control plane. The same history, without faults, runs in
// both worlds: on apiserver and cluster in fake time, and on a control plane of package controlplane with the program as a
// process of its own. After every step both must have the same objects, generations and pods; where they differ the model
// is wrong.
//
// A summary leaves out what chance or the clock decides: UIDs, resourceVersions, names with hashes, times. Values of the
// program's digests are replaced by the order in which they appeared.
package check
