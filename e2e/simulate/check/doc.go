// Package check compares the models of the simulator with a real control plane. The same history, without faults, runs in
// both worlds: on apiserver and cluster in fake time, and on a control plane of package controlplane with the program as a
// process of its own. After every step both must have the same objects, generations and pods; where they differ the model
// is wrong.
//
// A step ends at rest: nothing has changed while a canary was changed and reloaded, which the program does after it has seen what happened
// before; and it has no reload and no Event left to do. The canary is in a namespace that no summary looks at. What the program cannot do, as
// while a finalizer holds a Job, is not waited for without an end; a program that does not reload the canary fails the test.
//
// A summary leaves out what chance or the clock decides: UIDs, resourceVersions, names with hashes, times. Values of the
// program's digests are replaced by the order in which they appeared.
package check
