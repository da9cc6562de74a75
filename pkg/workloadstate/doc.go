// Package workloadstate keeps in memory what the loop needs of every workload, and reports when that changes. It is for
// workloads what configstate is for config objects.
//
//	API server ──list, watch (JSON)──► skim, workload.Shape ──► workload.Kept ──┬─► Watch.Get
//	                                                                            └─► changed(before, after) ──► reload
//
// A Source makes a Watch for each kind. It has one reflector of client-go for each watched namespace, or one for all
// namespaces. Nothing of an object but its workload.Kept outlives the decoder: an informer of unstructured objects takes six
// times the memory and decodes each object as a whole.
//
// A kind that is not served, or that may not be read, delays no other: it is retried until the context ends.
package workloadstate
