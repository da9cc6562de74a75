package workload

import (
	"cmp"
	"unique"
)

// Key names one workload.
type Key struct {
	// Kind is the ID of the workload's kind (Kind.ID).
	Kind      string
	Namespace string
	Name      string
}

// String returns e.g. "apps/v1/Deployment shop/cart".
func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// Compare orders Keys by namespace, name and kind.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name), cmp.Compare(k.Kind, other.Kind))
}

// Key returns the Key of a workload. Those of one kind share the memory of its ID.
func (s Summary) Key() Key {
	return Key{Kind: unique.Make(s.Kind.ID()).Value(), Namespace: s.Namespace(), Name: s.Name()}
}
