package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

// admitting is an API server whose webhook answers from some call on.
type admitting struct {
	client.Client

	calls, from int
	hash        string
	err         error
}

func (a *admitting) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	var applied client.CreateOptions
	applied.ApplyOptions(options)
	if len(applied.DryRun) == 0 {
		return errors.New("the Deployment would be stored")
	}
	if a.calls++; a.calls < a.from {
		return a.err
	}
	if deployment, ok := object.(*appsv1.Deployment); ok {
		deployment.Spec.Template.Annotations = map[string]string{a.hash: "x"}
	}
	return nil
}

func TestCheckRetriesWhileTheWebhookIsNotCalled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		err     error
		from    int
		calls   int
		want    string
		elapsed time.Duration
	}{
		"Stamped":     {reason: "the first answer", from: 1, calls: 1},
		"Late":        {reason: "the CA arrives after some seconds", from: 4, calls: 4, elapsed: 3 * time.Second},
		"Unreachable": {reason: "with the failure policy Fail", err: apierrors.NewInternalError(errors.New("failed calling webhook")), from: 3, calls: 3, elapsed: 2 * time.Second},
		"Never":       {reason: "the timeout ends it", from: 100, calls: 10, want: "no webhook stamped the Deployment", elapsed: 9500 * time.Millisecond},
		"Forbidden":   {reason: "a permission does not arrive by waiting", err: errors.New("forbidden"), from: 100, calls: 1, want: "forbidden"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				keys, err := annotation.NewKeys("example.org")
				require.NoError(t, err)
				api := &admitting{from: test.from, hash: "example.org/config-hash", err: test.err}
				started := time.Now()
				err = retry(t.Context(), 9500*time.Millisecond, func(ctx context.Context) error {
					return stamped(ctx, api, probe(keys, map[string]string{"tier": "web"}), keys.ConfigHash)
				})
				if test.want == "" {
					require.NoError(t, err, test.reason)
				} else {
					require.ErrorContains(t, err, test.want, test.reason)
				}
				assert.Equal(t, test.calls, api.calls, test.reason)
				assert.Equal(t, test.elapsed, time.Since(started), test.reason)
			})
		})
	}
}

// An API server that does not answer, such as one behind a proxy.
func TestCheckEndsAnAttemptThatHangs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		timeout time.Duration
		// answers is how many attempts end before one hangs.
		answers int
		elapsed time.Duration
		want    error
	}{
		"AfterTheTimeout":      {timeout: 30 * time.Second, elapsed: 30 * time.Second, want: context.DeadlineExceeded},
		"AskedOnceWithZero":    {elapsed: leastAttempt, want: context.DeadlineExceeded},
		"BehindAnotherAnswer":  {timeout: 30 * time.Second, answers: 1, elapsed: 30 * time.Second, want: errNotStamped},
		"AtTheEndOfTheTimeout": {timeout: 30 * time.Second, answers: 28, elapsed: 38 * time.Second, want: errNotStamped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				started, calls := time.Now(), 0
				err := retry(t.Context(), test.timeout, func(ctx context.Context) error {
					if calls++; calls <= test.answers {
						return errNotStamped
					}
					<-ctx.Done()
					return ctx.Err()
				})
				require.ErrorIs(t, err, test.want)
				assert.Equal(t, test.answers+1, calls)
				assert.Equal(t, test.elapsed, time.Since(started))
			})
		})
	}
}

func TestCanceledCheckNamesNoCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(retryPeriod/2, cancel)
		err := retry(ctx, time.Minute, func(context.Context) error { return errNotStamped })
		require.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, errNotStamped)
	})
}
