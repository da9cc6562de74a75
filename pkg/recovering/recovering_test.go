package recovering_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/recovering"
)

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	failure := errors.New("refused")
	require.EqualError(t, recovering.Func(func() error { panic("oops") })(), "panic: oops")
	require.Equal(t, failure, recovering.Func(func() error { return failure })())
	require.NoError(t, recovering.Func(func() error { return nil })())
}
