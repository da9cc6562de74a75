package tracking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
)

// The webhook of a standby answers from what its watches and re-checks have read, where it does not read live.
func TestStandbyRechecksWhatItsWebhookAnswersFrom(t *testing.T) {
	t.Parallel()
	db, tls := reference.Ref{Kind: reference.Secret, Name: "db"}, reference.Ref{Kind: reference.Secret, Name: "tls"}
	l, store, _ := trackingWithFailing(t, failing{"secrets": true, "fleets.example.com": true}, nil, nil)
	l.tracking.rechecks.with.Queue = queue.New(&queue.Leadership{}, time.Now)
	l.tracking.rechecks.with.Store = referring{store, map[string][]reference.Ref{"shop": {tls}}}
	recheckOnce(t.Context(), l.tracking.rechecks)
	assert.ElementsMatch(t, []index.Object{
		{Namespace: "bank", Ref: db}, {Namespace: "shop", Ref: db}, {Namespace: "shop", Ref: tls},
	}, store.seen)
	assert.Empty(t, l.tracking.rechecks.unseen(), "workloads are for the leader, which compares each of them when it begins to lead")
}
