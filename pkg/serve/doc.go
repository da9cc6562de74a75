// Package serve has the servers of the program: for admission, probes and metrics. Any pod can reach their ports, so each bounds its
// connections, what callers can hold in memory, and how long they may take.
package serve
