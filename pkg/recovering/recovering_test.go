package recovering_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
)

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	failure := errors.New("refused")
	err := recovering.Func(func() error { panic("oops") })()
	require.EqualError(t, err, "panic: oops")
	require.Equal(t, failure, recovering.Func(func() error { return failure })())
	require.NoError(t, recovering.Func(func() error { return nil })())

	log, lines := logtest.New()
	require.True(t, recovering.Log(log, fmt.Errorf("read: %w", err)), "the error is of a panic")
	require.Len(t, lines(), 1)
	require.Contains(t, lines()[0], "recovering_test.go", "the stack")
	require.False(t, recovering.Log(log, failure), "the error is not of a panic")
	require.False(t, recovering.Log(log, nil), "there is no error")
	require.Len(t, lines(), 1)
}
