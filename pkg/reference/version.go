package reference

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Later reports whether a resourceVersion is that of a later write than another one. It is false where the two have no order. The
// resources of one API server share the revisions of their storage.
func Later(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}
