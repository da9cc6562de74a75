package reload

import (
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

func keyOf(o workload.Object) Key {
	return Key{Kind: o.Kind.ID(), Namespace: o.Namespace(), Name: o.Name()}
}
