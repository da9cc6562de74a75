package watch

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"k8s.io/klog/v2"
)

// What client-go logs reaches the program's log as if it were not listened to.
func TestListenerPassesOnWhatIsLogged(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string]bool{"plain": false, "listening": true} {
		var lines []string
		ctx := klog.NewContext(t.Context(), funcr.New(func(prefix, args string) { lines = append(lines, prefix+": "+args) }, funcr.Options{}))
		var connectionError error
		if listens {
			ctx = listen(ctx, func(err error) { connectionError = err })
		}
		logger := klog.FromContext(ctx).WithName("reflector").WithValues("resource", "widgets")
		logger.Error(errors.New("no answer"), "Failed to watch")
		logger.Info("Watch closed", "items", 3)
		logger.V(5).Info("Unable to decode", "err", io.ErrUnexpectedEOF)
		assert.Equal(t, []string{
			`reflector: "msg"="Failed to watch" "error"="no answer" "resource"="widgets"`,
			`reflector: "level"=0 "msg"="Watch closed" "resource"="widgets" "items"=3`,
		}, lines, "%s: what is too detailed for the log is not in it", name)
		if listens {
			assert.Equal(t, io.ErrUnexpectedEOF, connectionError, "it is heard all the same")
		}
	}
}

func TestListenerNeedsNoLog(t *testing.T) {
	t.Parallel()
	var connectionError error
	ctx := listen(klog.NewContext(context.Background(), logr.Logger{}), func(err error) { connectionError = err })
	logger := klog.FromContext(ctx).WithName("reflector").WithValues("resource", "widgets")
	logger.Error(errors.New("no answer"), "Failed to watch")
	logger.Info("Unable to decode", "err", io.ErrUnexpectedEOF)
	assert.Equal(t, io.ErrUnexpectedEOF, connectionError)
}
