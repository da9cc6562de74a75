package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
)

// filePoll is how often the file is looked at. Polling sees every way of replacing it, the swap of symbolic links by which
// the kubelet updates a mounted ConfigMap included, and a file that is not there yet.
const filePoll = time.Second

// file is the Source of a configuration in a file.
type file struct{ options SourceOptions }

func newFile(options SourceOptions) *file { return &file{options} }

// fileSettle is how long a file must stay as it is: a write of it may be in progress, and half of a list is a list.
const fileSettle = 100 * time.Millisecond

// Start follows the file until the context ends.
func (f *file) Start(ctx context.Context) error {
	var offered, seen *Content
	for {
		content := readFile(f.options.Location.Path)
		content.Regarding = f.options.Pod
		pause := filePoll
		switch {
		case content.same(offered):
		case content.same(seen):
			f.options.Offer(content)
			offered = &content
		default:
			pause = fileSettle
		}
		seen = &content
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// same reports whether two contents of a file are the same.
func (c Content) same(other *Content) bool {
	switch {
	case other == nil:
		return false
	case c.Missing != nil || other.Missing != nil:
		return c.Missing != nil && other.Missing != nil && c.Missing.Error() == other.Missing.Error()
	default:
		return string(c.Text) == string(other.Text)
	}
}

// readFile reads a file once, not more of it than can be a configuration.
func readFile(path string) Content {
	text, err := readAll(path)
	if errors.Is(err, os.ErrNotExist) {
		return Content{Missing: fmt.Errorf("there is no file %s: create it, or correct --config", path)}
	}
	if err != nil {
		return Content{Missing: fmt.Errorf("read the configuration: %w", err)}
	}
	return Content{Text: text}
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, configuration.MaxSize+1))
}
