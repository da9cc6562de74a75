// Package observe watches workloads from outside: it records which versions of a pod template the API server has had,
// when each appeared and what it looked like. Tests, the demo and the benchmarks report as observed what comes from here.
//
// It imports nothing of the program that it observes, knows none of its annotations, and sees every version of an
// object: it watches and never polls, and it says so where history got lost ([Watcher.Unseen]). A barrier
// ([Watcher.Sync]) waits until everything that the API server has stored so far was seen, so that "nothing happened" is a
// statement and not a guess.
package observe
