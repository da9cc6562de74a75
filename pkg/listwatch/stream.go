package listwatch

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Stream returns the events that next reads from the body of a watch. It ends when the body does.
func Stream(body io.ReadCloser, next func() (watch.EventType, runtime.Object, error), log logr.Logger) watch.Interface {
	return watch.NewStreamWatcherWithLogger(log, &decoder{body, next},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "WATCH", "ClientWatchDecoding"))
}

// decoder reads events for as long as they come.
type decoder struct {
	body io.ReadCloser
	next func() (watch.EventType, runtime.Object, error)
}

// Decode waits for the next event.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	kind, object, err := d.next()
	if err != nil {
		return "", nil, plain(err)
	}
	return kind, object, nil
}

// plain unwraps the two errors that StreamWatcher takes for the ordinary end of a watch.
func plain(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return end
		}
	}
	return err
}

// Close ends the watch; a Decode that waits returns.
func (d *decoder) Close() { _ = d.body.Close() }
