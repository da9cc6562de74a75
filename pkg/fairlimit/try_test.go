package fairlimit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

func TestTryAcquireDoesNotWait(t *testing.T) {
	t.Parallel()
	l := fairlimit.New(3, 2)
	first, err := l.TryAcquire("a", 2)
	require.NoError(t, err)
	_, err = l.TryAcquire("a", 1)
	require.ErrorIs(t, err, fairlimit.ErrFull, "beyond the share")
	_, err = l.TryAcquire("b", 2)
	require.ErrorIs(t, err, fairlimit.ErrFull, "beyond the total")
	assert.Zero(t, l.Waiting())
	other, err := l.TryAcquire("b", 1)
	require.NoError(t, err)
	other()
	first()
	again, err := l.TryAcquire("a", 9)
	require.NoError(t, err, "more than a share")
	again()
}
