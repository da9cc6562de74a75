// Package logtest has a logger for tests, which keeps its lines.
package logtest

import (
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Lines returns the lines that were logged until now.
type Lines func() []string

// New returns a logger and its lines. They are safe for concurrent use.
func New() (logr.Logger, Lines) {
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	return log, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// Count returns how often the lines have a text.
func (l Lines) Count(text string) int { return strings.Count(l.String(), text) }

// String returns the lines as one text.
func (l Lines) String() string { return strings.Join(l(), "\n") }
