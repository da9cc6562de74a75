package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// offered keeps alerts.
type offered struct{ alerts []alert.Reload }

func (*offered) Accepts(string) bool { return true }

func (o *offered) Offer(r alert.Reload) { o.alerts = append(o.alerts, r) }

// The process that creates the Event of a reload offers the alert. Another leader that finds the Event does not.
func TestReloadIsOfferedAsAnAlertByTheProcessThatReportsIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outcome outbox.Outcome
		want    int
	}{"created": {outbox.Created, 1}, "exists": {outbox.Exists, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, out, now := emitter()
			alerts := &offered{}
			l.with.Alerts = alerts
			l.with.Leads.Begin(now.Add(-time.Minute))
			l.EmitReloads(webOf().with(reloadAt(now.Add(-time.Second), "a")))
			assert.Empty(t, alerts.alerts, "the Event comes first")
			out.messages[0].Done(tc.outcome)
			out.messages[0].Done(tc.outcome)
			assert.Len(t, alerts.alerts, tc.want)
			for _, a := range alerts.alerts {
				assert.Equal(t, alert.Reload{
					Time: now.Add(-time.Second), Kind: "Deployment", Namespace: "shop", Name: "web", Cause: record.CauseConfigChange,
					Changes: []alert.Change{{Kind: "configmap", Name: "app", Type: record.Modified}},
				}, a)
			}
		})
	}
}

// The annotation may have been edited. What is no name and no known word is not passed on.
func TestAlertHasKnownWordsOnly(t *testing.T) {
	t.Parallel()
	a := alertAbout(webOf(), record.LastReload{Cause: "<!channel>", More: 1, Changes: []record.Change{
		{Ref: "configmap/<!here>", Type: record.Modified},
		{Ref: "secret/db", Type: "<!here>"},
		{Ref: "*", Type: record.Modified},
		{Ref: "secret/tls", Type: record.Deleted},
	}}, "")
	assert.Equal(t, "other", a.Cause)
	assert.Equal(t, []alert.Change{{Kind: "secret", Name: "tls", Type: record.Deleted}}, a.Changes)
	assert.Equal(t, 4, a.More)
}
