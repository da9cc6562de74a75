package listwatch

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// silence is how long a watch may send nothing. The API server sends a bookmark about every minute; a connection that is
// silent for longer is given up and opened again from where it was, which costs one request.
const silence = 150 * time.Second

// Stream returns the events that next reads from the body of a watch. It ends when the body does, or is silent for too long.
func Stream(body io.ReadCloser, next func() (watch.EventType, runtime.Object, error), log logr.Logger) watch.Interface {
	return watch.NewStreamWatcherWithLogger(log, newDecoder(body, next),
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "WATCH", "ClientWatchDecoding"))
}

// decoder reads events for as long as they come.
type decoder struct {
	body    io.ReadCloser
	next    func() (watch.EventType, runtime.Object, error)
	close   sync.Once
	silence *time.Timer
	silent  atomic.Bool
}

func newDecoder(body io.ReadCloser, next func() (watch.EventType, runtime.Object, error)) *decoder {
	d := &decoder{body: body, next: next}
	d.silence = time.AfterFunc(silence, d.giveUp)
	return d
}

// Decode waits for the next event.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	kind, object, err := d.next()
	if err != nil && d.silent.Load() {
		return "", nil, io.EOF // go on with a new watch from here
	}
	if err != nil {
		return "", nil, plain(err)
	}
	d.silence.Reset(silence)
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
func (d *decoder) Close() {
	d.close.Do(func() {
		d.silence.Stop()
		_ = d.body.Close()
	})
}

// giveUp ends a watch that has been silent for too long.
func (d *decoder) giveUp() {
	d.silent.Store(true)
	d.Close()
}
