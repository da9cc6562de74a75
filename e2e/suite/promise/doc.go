// Package promise shows that pod-reloader keeps its promises, on a real control plane and as an outside observer sees it:
// a test for each of P1 to P8 of the documentation. Every test says in its name which promise it is about.
package promise
