package reload

import (
	"cmp"
	"unique"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Key names one workload.
type Key struct {
	// Kind is the ID of the workload's kind (workload.Kind.ID).
	Kind      string
	Namespace string
	Name      string
}

// String returns e.g. "apps/v1/Deployment shop/cart".
func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name), cmp.Compare(k.Kind, other.Kind))
}

func keyOf(s workload.Summary) Key {
	return Key{Kind: unique.Make(s.Kind.ID()).Value(), Namespace: s.Namespace(), Name: s.Name()}
}
