package app

import (
	"cmp"
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/keyring"
)

// digestKey is the Secret of the digest key; keyring.Keyring is one.
type digestKey interface {
	// Ready reports whether there is a key, Problem what is wrong with the Secret all the same.
	Ready() bool
	Problem() string
}

// reportsKey has a report look at the digest key, which logs its problems itself.
func (r *installationReport) reportsKey(key digestKey) {
	r.interval, r.pause = keyLookInterval, keyEventPause
	var since time.Time
	r.look = func(_ context.Context, now time.Time) (finding, bool) {
		problem := key.Problem()
		if problem == "" {
			since = time.Time{}
		} else if since.IsZero() {
			since = now
		}
		if problem != "" && now.Sub(since) < keyPatience {
			return finding{}, false
		}
		return finding{
			what: problem, note: cmp.Or(problem, "the Secret of the digest key is usable again"), well: problem == "" && key.Ready(),
			write: func() {},
		}, true
	}
}

const (
	// keyLookInterval is how often the digest key is looked at.
	keyLookInterval = 10 * time.Second
	// keyPatience is how long something must be wrong before it is reported: a replica that starts with an API server that is away reads the
	// Secret again after 15 s at most.
	keyPatience = 20 * time.Second
	// keyEventPause is the least time between two Events about what is wrong with it.
	keyEventPause = time.Minute
)

// buildKeyReporter adds what reports a Secret of the digest key that cannot be used to the manager.
func (b *builder) buildKeyReporter(mgr manager.Manager) error {
	r := b.newReport(mgr, "digest-key", keyring.EventUnusable, keyring.EventUsable)
	r.reportsKey(b.keys)
	return mgr.Add(&r)
}
