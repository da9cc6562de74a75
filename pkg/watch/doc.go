// Package watch keeps indexed, pruned and debounced views of Kubernetes
// resources. It is the code that is otherwise written by hand around each
// client-go informer. It is independent and imports nothing of this project.
//
// Bulk watches the objects of a resource, Single one named object:
//
//	API server
//	    │ list + watch (label selector, name, fields that the server supports)
//	    ▼
//	Transform, IgnoreFields,        the goroutine that reads from the server;
//	80.0 → 80                       the only place where an object may change
//	FieldSelector: else drop it
//	    │
//	    ▼
//	informer's cache ────────────── Single: same version or generation? skip
//	    │                                │
//	    ▼                                ▼ immediately, the latest state
//	resync? report nothing          OnSyncComplete(object), OnChange(object)
//	    │
//	    ├──► Store, by IndexBy ◄──── Reader: Get, List, Object; any goroutine
//	    │
//	    ├──► OnObject(old, new)      informer's goroutine: enqueue only
//	    ▼
//	Debouncer: +2 ~1 -0
//	    │ leading edge, then once an interval; held back during the initial sync
//	    ▼
//	OnChange(store, stats),          one callback goroutine: may block, may
//	OnSyncComplete(store, count)     call back into the watcher
//
// The informer is a plain SharedIndexInformer of unstructured objects over the
// dynamic client, which is just what client-go's dynamic shared index informer
// (package dynamicinformer) is; only list and watch are this package's own, so
// that they can prepare objects and record errors.
//
// # Costs
//
// A list that the server does not stream is read in pages of ten objects, which
// are prepared before the next page comes: large objects do not fill the memory.
// With Config.TooLarge, the objects of a page that is too large are read two at a
// time, or one at a time where two are too large. Before Kubernetes 1.34, the server
// answers each page after the first from etcd; later ones answer from their cache
// where that still has the version. Where the version of the first page expires
// meanwhile, which it does after five minutes, all objects are read at once.
//
// Each page is a request under the rate limit of the client, 5 requests a second
// by default: 20,000 objects would take 400 s. Set the QPS of its rest.Config to
// -1, which is no limit, or to one that fits.
//
// The figures are the ranges of six runs of `make bench` on two cores that the API
// server shares. Compared with a bare dynamic informer, for a streamed list of 10,000
// objects of 2 kB: the initial sync of a Bulk takes 0.95 to 1.1 times the time and
// holds 1.02 to 1.04 times the memory, or 0.88 to 0.93 times where IgnoreFields names
// metadata.managedFields. The informer's cache and the store share the objects, so
// that a store adds 400 to 800 bytes for each, also after a relist, which brings new
// copies; and ignored fields are removed before anything is kept.
//
// An event costs 3.9 to 4.4 times the time that it costs a bare informer, or 3 to 3.4
// times where IgnoreFields removes metadata.managedFields, without network and
// decoding. The conversion of numbers, which visits every field, is the
// largest part. Selector, ignored fields, Transform and callbacks cost nothing where
// they are not configured. Looking an object up by its whole key takes as long as a
// few map look-ups; a list of many objects has to be sorted.
//
// The budgets that `make bench` checks in its scenarios watch-sync and watch-events
// are 5 times the time of a bare informer for an event, 1.3 times for the initial
// sync and its memory, and 1,000 bytes for each object. To run these alone:
//
//	go run ./e2e/bench -scenario watch-sync,watch-events
//
// Objects that FieldSelector does not select cost nothing once they are decoded,
// and are not sent where the API server evaluates the term; Config.FieldSelector
// says which ones.
//
// Store, Indexer, Selector and Debouncer can be used alone. Constructors
// check everything and report every error as a ConfigError, which names field,
// expression and position.
//
// # Expressions
//
// IndexBy, IgnoreFields and FieldSelector name fields by the part of JSONPath
// that leads to definite places:
//
//	metadata.namespace                            fields
//	metadata.labels['app.kubernetes.io/name']     names with dots: quoted,
//	metadata.labels.app\.kubernetes\.io/name      or with backslashes
//	spec.rules[0].host, spec.rules[-1].host       one item, also from the end
//	spec.rules[*].host                            every item
//	status.conditions[?(@.type=="Ready")].status  selected items (==, !=, exists)
//
// An index expression that leads to several values (a [*] or a filter) makes a
// key for each of them.
//
// # Errors
//
// Every failure of list and watch is logged, kept by LastWatchError and passed
// to OnWatchError, including those that client-go does not report, such as a
// connection that breaks while a stream is read or opened. The watcher retries
// after every error, with pauses of up to a minute. client-go only logs a connection
// that breaks while a stream is read. A program that calls
// klog.EnableContextualLogging(false), as component-base does with the feature gate
// ContextualLogging=false, hides that log from this package: such a break then counts
// as a stream that the server ends.
//
// An expired resourceVersion (410) and a stream that the server ends are no
// failures, with these exceptions:
//   - a 410 for a list, streamed or not, at no particular version, as from a proxy
//     for an endpoint that is gone;
//   - a 410 for the third watch in a row that fails or ends at once, or a bookmark
//     as all that such a watch has sent;
//   - a stream that ends before the initial list is complete;
//   - a new stream that ends within a second, before any event.
//
// A server, or a proxy before it, that does not answer is an error as well: after
// 30 s for a watch, 2 min for the first byte of a list and 5 min for its body.
// These limits include what client-go repeats by itself: requests whose connection
// breaks, and those that the server answers with Retry-After (429 and 5xx). After
// such an answer, a list has 2 min for the first byte again. If it is still
// repeated a minute after it was sent, the next repeat is an error. A stream that
// is silent for 150 s is opened again. This is an error if the server has sent
// bookmarks before, which it does about every minute, or if the initial list is
// not complete; then the list is read without a stream. So it is where a bookmark
// comes before the end of that list.
//
// A server that was restored from a backup accepts a watch at a version that it
// does not have yet, and sends nothing until then. Once it has reached that
// version, nothing shows that it was restored. So after a refused connection,
// everything is listed again when the server is there; an API server that was
// started again answers 410 to a watch that goes on, so that only where another
// one takes over that is a list more. After a silence, a list of one object shows
// first whether the server is behind: then everything is listed again.
//
// A Single without a namespace whose kind has namespaces ends: Start and
// WaitForSync return a ConfigError. Where no object of the name exists, that
// takes the permission to get it in every namespace, and an API server that serves
// the kind already; else the Single ends when one appears.
//
// WaitForSync's error is both the context's error and its cause, for errors.Is.
//
// # What to know about informers
//
// Objects are shared with the caches: never change one outside of Transform.
// KUBE_CACHE_MUTATION_DETECTOR=true finds the code that does.
//
// A fake dynamic client (k8s.io/client-go/dynamic/fake) sets no
// resourceVersion, so that a Bulk takes every update from it for a resync, which
// it does not report: set the versions yourself. It honours label selectors in
// lists only.
//
// A client that wraps another one must pass on its method
// IsWatchListSemanticsUnSupported, if it has that; embedding dynamic.Interface
// alone hides it, and the informer of a fake then waits forever.
package watch
