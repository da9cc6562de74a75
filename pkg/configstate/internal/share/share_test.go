package share_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/share"
)

// reads counts reads, each of which takes a second of fake time and returns the count at its beginning.
type reads struct {
	group share.Group[string, int]
	begun int
	ended []error
}

func (r *reads) do(ctx context.Context) (int, error) {
	return r.group.Do(ctx, "key", func(ctx context.Context) (int, error) {
		r.begun++
		value := r.begun
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		r.ended = append(r.ended, ctx.Err())
		return value, ctx.Err()
	})
}

func TestAtMostOneReadAndOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r reads
		got := make(chan int, 10)
		call := func() {
			value, err := r.do(t.Context())
			assert.NoError(t, err)
			got <- value
		}
		go call()
		synctest.Wait()
		for range 4 {
			go call()
			<-time.After(time.Second / 10) // of fake time: they come while the first read is under way
		}
		assert.Equal(t, 1, <-got)
		synctest.Wait()
		go call() // comes while the second read is under way: it needs a third
		for range 4 {
			assert.Equal(t, 2, <-got, "a read that began later, and the same for all")
		}
		assert.Equal(t, 3, <-got)
		assert.Equal(t, uint64(3), r.group.Joined())

		value, err := r.do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 4, value, "an idle key begins at once")
	})
}

func TestAWaiterLeavesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r reads
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		go func() { _, _ = r.do(t.Context()) }()
		synctest.Wait()
		got := make(chan int)
		go func() {
			value, err := r.do(t.Context())
			assert.NoError(t, err)
			got <- value
		}()
		_, err := r.do(impatient)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 2, <-got, "the others still have their read")
		assert.Equal(t, []error{nil, nil}, r.ended)
	})
}

// The read of a caller who leaves is canceled; the one that others wait for behind it is theirs.
func TestCallersBehindACanceledReadHaveTheirs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r reads
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := r.do(impatient)
			failed <- err
		}()
		synctest.Wait()
		value, err := r.do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, value)
		err = <-failed
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, share.ErrWaiting, "the read had begun: the API server is slow")
	})
}

func TestReadIsCanceledWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r reads
		short, cancelShort := context.WithTimeout(t.Context(), time.Second/2)
		defer cancelShort()
		shorter, cancelShorter := context.WithTimeout(t.Context(), time.Second/4)
		defer cancelShorter()
		go func() { _, _ = r.do(shorter) }() // may be first or second
		_, err := r.do(short)
		require.Error(t, err)
		synctest.Wait()
		for _, err := range r.ended {
			assert.ErrorIs(t, err, context.Canceled, "a read without a caller is canceled")
		}
		_, err = r.do(t.Context())
		require.NoError(t, err, "and the key is free again")

		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		begun := r.begun
		_, err = r.do(cancelled)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, begun, r.begun, "who has left already begins nothing")
	})
}

func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := reads{group: share.Group[string, int]{Limit: time.Second / 2}}
		_, err := r.do(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, []error{context.DeadlineExceeded}, r.ended)
	})
}

func TestFailuresAreShared(t *testing.T) {
	t.Parallel()
	var group share.Group[string, int]
	failure := errors.New("refused")
	_, err := group.Do(t.Context(), "key", func(context.Context) (int, error) { return 0, failure })
	require.ErrorIs(t, err, failure)
	_, err = group.Do(t.Context(), "key", func(context.Context) (int, error) { panic("oops") })
	require.ErrorContains(t, err, "oops", "a panic ends the read, not the process")
	value, err := group.Do(t.Context(), "key", func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, value)
}

// Callers who come while the read of another waits for its admission share it: it begins after they asked.
func TestReadsAreSharedUntilTheyAreAdmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		admitted, released := make(chan struct{}), 0
		r := reads{group: share.Group[string, int]{Admit: func(ctx context.Context, key string) (func(), error) {
			assert.Equal(t, "key", key)
			select {
			case <-admitted:
				return func() { released++ }, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}}
		got := make(chan int, 10)
		for range 5 {
			go func() {
				value, err := r.do(t.Context())
				assert.NoError(t, err)
				got <- value
			}()
		}
		synctest.Wait()
		assert.Zero(t, r.begun)
		admitted <- struct{}{}
		synctest.Wait()
		late := make(chan int)
		go func() {
			value, _ := r.do(t.Context())
			late <- value
		}()
		for range 5 {
			assert.Equal(t, 1, <-got)
		}
		synctest.Wait()
		assert.Equal(t, 1, released, "the place is free for others before the next read of the key is admitted")
		admitted <- struct{}{}
		assert.Equal(t, 2, <-late, "it came when the first read had begun")
		assert.Equal(t, uint64(4), r.group.Joined())
		synctest.Wait()
		assert.Equal(t, 2, released)
	})
}

// A read that waits for its admission is called off with its last caller, and one that comes then begins its own.
func TestWaitingReadEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		admitted, left := make(chan struct{}), 0
		r := reads{group: share.Group[string, int]{Admit: func(ctx context.Context, _ string) (func(), error) {
			select {
			case <-admitted:
				return func() {}, nil
			case <-ctx.Done():
				left++
				return nil, ctx.Err()
			}
		}}}
		impatient, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := r.do(impatient)
				failed <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			err := <-failed
			require.ErrorIs(t, err, share.ErrWaiting, "the API server is not to blame")
			require.ErrorIs(t, err, context.Canceled)
		}
		synctest.Wait()
		assert.Equal(t, 1, left, "the read is out of the queue")
		assert.Zero(t, r.begun)

		go func() { admitted <- struct{}{} }()
		value, err := r.do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, value)
	})
}

// A read that its only caller has left while it was next is not handed to those who come then.
func TestCallerAfterADepartureHasARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r reads
		go func() { _, _ = r.do(t.Context()) }()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := r.do(impatient)
		require.ErrorIs(t, err, share.ErrWaiting)
		value, err := r.do(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, value)
	})
}
