package controlplane

import (
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// Warnings are the warnings that the API server adds to its answers: give it to a configuration as its WarningHandler. The
// zero value is ready. It is safe for concurrent use.
type Warnings struct {
	mutex sync.Mutex
	texts []string
}

var _ rest.WarningHandler = (*Warnings)(nil)

// HandleWarningHeader is called for each.
func (w *Warnings) HandleWarningHeader(_ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// Take returns the warnings since the last time.
func (w *Warnings) Take() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	texts := w.texts
	w.texts = nil
	return slices.Clip(texts)
}
