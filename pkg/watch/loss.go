package watch

import (
	"context"
	"reflect"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// client-go takes a connection that breaks for the end of its stream: the
// error of one that breaks while a stream is read is only logged, to the
// context's logger, and one that breaks while a stream is opened makes an empty
// stream. The first is read from the log here, the second is known by its type.
// Where a program switches klog's contextual logging off, the first is lost.

// listen makes client-go's log of broken streams heard. It is for watches only:
// for a logger that is enabled at every level, client-go turns the body of any
// other answer into a string.
func listen(ctx context.Context, heard func(error)) context.Context {
	logger := klog.FromContext(ctx)
	return klog.NewContext(ctx, logger.WithSink(listener{logger.GetSink(), heard}))
}

// listener hears what it passes on to a sink, which may be nil.
type listener struct {
	sink  logr.LogSink
	heard func(error)
}

// Init is for the interface; the sink was initialised before.
func (listener) Init(logr.RuntimeInfo) {}

// Enabled lets everything be heard: the level of what counts is 5.
func (listener) Enabled(int) bool { return true }

func (l listener) Info(level int, message string, values ...any) {
	for _, value := range values {
		if err, ok := value.(error); ok && broken(err) {
			l.heard(err)
		}
	}
	if l.sink != nil && l.sink.Enabled(level) {
		l.sink.Info(level, message, values...)
	}
}

func (l listener) Error(err error, message string, values ...any) {
	if l.sink != nil {
		l.sink.Error(err, message, values...)
	}
}

func (l listener) WithValues(values ...any) logr.LogSink {
	if l.sink != nil {
		l.sink = l.sink.WithValues(values...)
	}
	return l
}

func (l listener) WithName(name string) logr.LogSink {
	if l.sink != nil {
		l.sink = l.sink.WithName(name)
	}
	return l
}

// broken reports whether the error is one that client-go takes for the end of a
// stream. The clean end is not logged.
func broken(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// isEmpty reports whether the stream is what client-go makes of a connection
// that broke before the server answered.
func isEmpty(stream watch.Interface) bool {
	return reflect.TypeOf(stream) == reflect.TypeOf(watch.NewEmptyWatch())
}
