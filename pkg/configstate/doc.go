// Package configstate caches the current state of config objects: which ConfigMaps and Secrets exist, and the
// Entries of those that were asked for. The webhook and the loop read it; it reads the API server.
//
// It has three parts, from cheap to exact. The metadata cache follows all ConfigMaps and Secrets in scope by watches
// that transfer metadata only, and answers Cached without a request. The digest cache keeps the Entries of objects
// that were read, by UID and resourceVersion, so that nothing is read twice. ReadLive asks the API server, and
// shares a request among callers only if it began after each of them asked. How many of these requests are in flight is
// bounded, and shared fairly between namespaces, and between webhook and loop: see limit.go.
//
// # Parts and locks
//
// Store is the way in, and has no state but that of its parts. Each part that has some guards it by a lock of its own, whose comment says
// what it guards: metadataCache has the metadata, podStatusCache the statuses in which SecretProviderClasses have their contents,
// syncProgress how far each watch has got, and digests the Entries. The reader and the rechecker use these four and the client,
// and have no state: who shares a request, and who waits for one, is known to the packages share and fairlimit.
//
// While the lock of metadataCache or of podStatusCache is held, that of syncProgress or of digests may be taken; any other two are
// never held together. None is held during I/O, nor while a handler of events runs. Only watcher.delivering is held while handlers run, and
// is taken before all others.
//
// # What stays in memory
//
// Of a config object: namespace, name, UID, resourceVersion, the annotations that [Options].OwnAnnotations keeps, and
// 32 bytes an Entry. Of its payload, and of the annotation in which `kubectl apply` repeats it, nothing stays. Events
// and objects are read out of a buffer that is overwritten at once, and a Secret's values are hashed in that buffer.
// The value of any other annotation never becomes a Go string. If Options.HTTPClient is nil, the connections clear
// their buffers too, before they wait for more bytes; that costs HTTP/2.
//
// What is not promised: while a response is being read it is in memory, of course. A client that is passed in keeps the
// last few KiB of its connections, up to 16 KiB of an HTTP/2 frame among them, until something overwrites them. The text
// of a ConfigMap's data (not its binaryData, nor anything of a Secret) becomes Go strings, which the next garbage
// collection frees but does not overwrite. The kernel's socket buffers and swap are out of reach.
package configstate
