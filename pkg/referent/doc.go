// Package referent computes the checksum chain: one checksum for each custom resource, over everything that it refers
// to, from the leaves up to the resource that a workload runs with. A workload is restarted if and only if a valid graph
// has changed.
//
// The package is pure. A Schema is the compiled configuration: the resources, and the edges between them. A Graph has a
// node for each object of these resources, and for each ConfigMap and Secret that they refer to. It is given objects and
// states, and keeps of an object only what counts: references, readiness, and HMACs of the content.
//
//	Definitions ── Compile ──► Schema
//	                             │
//	objects, states, sources ─► Graph ── Evaluate ──► Changes: which nodes, and because of what
//	                             ├─ State    the Entry of a node for a workload's Record, or the Hold
//	                             ├─ Publication   the annotation of a node, where it differs
//	                             └─ Picture ──► text, DOT, Mermaid
//
// # Digests
//
// The digest of a node covers the sorted, unique entries of its children, not the node itself: publishing it does not
// change it. An entry has the child's resource, namespace, name and version, and the child's own digest. What the version
// is, the configuration says for each resource (Self). resourceVersion never counts, because it also changes where the
// content does not; the exception is the algorithm crc32, which reproduces the checksums of Kroxylicious.
//
// A digest under HMAC begins with "v1:" and the ID of its digest key, as a config-hash does: after a rotation of the key,
// a published digest is compared under the key that it was made with.
//
// # Holds
//
// A node is held if its digest cannot be trusted: see Reason. Whatever refers to a held node is held, too, and nothing is
// written for it: what was written last remains. A reference that is optional may be absent. It excuses nothing else: an
// object that is there but not ready, or that may not be read, holds whatever refers to it, as leaving it out would
// restart pods because of a configuration that is not valid.
//
// # Bounds
//
// See MaxResources, MaxDepth, MaxNodes, MaxReferences and MaxLinks.
package referent
