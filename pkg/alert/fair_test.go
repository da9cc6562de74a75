package alert

import (
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
)

// notStarted is a Notifier that delivers nothing yet.
func notStarted() running {
	log, _ := logtest.New()
	return running{Notifier: New(Config{Sink: Webhook}, prometheus.NewRegistry(), log)}
}

func alertOf(namespace string) Reload {
	r := cart()
	r.Namespace = namespace
	return r
}

// The alerts of a namespace neither drop nor delay those of another one.
func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	n := notStarted()
	for range 2000 {
		n.Offer(alertOf("busy"))
	}
	for range 3 {
		n.Offer(alertOf("quiet"))
	}
	assert.InDelta(t, 2000-queueSize, n.has(overflow), 0, "those of the namespace whose queue is full")
	n.close()
	var namespaces []string
	for r, ok := n.next(); ok; r, ok = n.next() {
		namespaces = append(namespaces, r.Namespace)
	}
	assert.Len(t, namespaces, queueSize+3)
	assert.Equal(t, []string{"busy", "quiet", "busy", "quiet", "busy", "quiet", "busy", "busy"}, namespaces[:8])
	assert.Zero(t, n.pending())
	assert.Empty(t, n.queue.alerts)
}

// A notification that was accepted is added although others have filled the queue meanwhile: its change is recorded by then.
func TestNotificationOfARecordedChangeIsNotDropped(t *testing.T) {
	t.Parallel()
	n := notStarted()
	for range queueSize {
		assert.True(t, n.Accepts("busy"), "the queue has space for it")
		n.Offer(alertOf("busy"))
	}
	assert.False(t, n.Accepts("busy"), "the queue is full of notifications of this namespace")
	assert.True(t, n.Accepts("quiet"), "a namespace without a notification is still accepted")
	notification := alertOf("busy")
	notification.NotReloaded = true
	n.Offer(notification)
	assert.Zero(t, n.has(overflow))
	n.Offer(alertOf("busy"))
	assert.InDelta(t, 1, n.has(overflow), 0)
	assert.Equal(t, queueSize+1, n.pending())
	n.close()
	assert.False(t, n.Accepts("quiet"), "it would be lost with the process")
	n.Offer(notification)
	assert.InDelta(t, 2, n.has(overflow), 0)
}

// Many namespaces together have a limit, too. It leaves a share to each one.
func TestAlertsOfAllNamespacesAreLimited(t *testing.T) {
	t.Parallel()
	n := notStarted()
	const namespaces = 40
	for range queueSize {
		for namespace := range namespaces {
			n.Offer(alertOf(strconv.Itoa(namespace)))
		}
	}
	assert.Equal(t, totalSize, n.pending())
	assert.InDelta(t, namespaces*queueSize-totalSize, n.has(overflow), 0)
	for range 2 * queueSize {
		n.Offer(alertOf("quiet"))
	}
	assert.Equal(t, totalSize+totalSize/(namespaces+1), n.pending(), "its share")
}
