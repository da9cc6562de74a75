package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// apiWarnings prints each warning of the API server once, such as those of an admission webhook. Without it, the warnings would go to
// the log of controller-runtime, which a command does not have.
type apiWarnings struct {
	out io.Writer

	mu    sync.Mutex
	texts []string
}

var _ rest.WarningHandlerWithContext = (*apiWarnings)(nil)

// warningCode is that of the warnings of the API server; others are of caches in between.
const warningCode = 299

// HandleWarningHeaderWithContext prints a warning.
func (w *apiWarnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != warningCode || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text = reference.Printable(text)
	if slices.Contains(w.texts, text) {
		return
	}
	w.texts = append(w.texts, text)
	fmt.Fprintf(w.out, "pod-reloader: warning: %s\n", text)
}

// starting returns the last warning that starts with one of some texts; empty for none.
func (w *apiWarnings) starting(texts ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range slices.Backward(w.texts) {
		if slices.ContainsFunc(texts, func(start string) bool { return strings.HasPrefix(text, start) }) {
			return text
		}
	}
	return ""
}
