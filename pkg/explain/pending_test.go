package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// The pause of a reload ends by itself, that of a user does not.
func TestPauseOfAReloadHasAnEnd(t *testing.T) {
	t.Parallel()
	const domain = "deployment.reloader.stakater.com/"
	for name, tc := range map[string]struct {
		kind, period, since, outside string
		unread, reloaded             bool
		want                         string
	}{
		"of a reload":                           {period: "30m", since: "2026-01-02T03:00:00Z", want: "paused by a reload until 2026-01-02T03:30:00Z"},
		"over":                                  {period: "30m", since: "2026-01-02T02:00:00Z", want: "paused by a reload, and the period is over"},
		"the begin is not a time":               {period: "30m", since: "yesterday", want: "paused by a reload, and the period is over"},
		"the period was removed":                {since: "2026-01-02T03:00:00Z", want: "paused by a reload, and the period is over"},
		"of a user":                             {period: "30m", want: "paused"},
		"out of scope":                          {period: "30m", since: "2026-01-02T03:00:00Z", outside: "--namespaces does not name shop", want: "paused"},
		"annotations are not read, of Reloader": {period: "30m", since: "2026-01-02T03:00:00Z", unread: true, want: "paused"},
		"annotations are not read, of a reload": {
			period: "30m", since: "2026-01-02T03:00:00Z", unread: true, reloaded: true, want: "paused by a reload until 2026-01-02T03:30:00Z",
		},
		"annotations are not read, the period is not valid": {
			period: "200h", since: "2026-01-02T03:00:00Z", unread: true, reloaded: true, want: "paused",
		},
		"another kind": {kind: "statefulset", since: "2026-01-02T03:00:00Z", want: "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			keys := annotation.NewStakaterKeys()
			if f.in.Stakater = &keys; tc.unread {
				f.in.Stakater, f.in.Unread = nil, &keys
			}
			f.in.Outside = tc.outside
			if tc.reloaded {
				f.annotations()[f.in.Keys.LastReload] = "x"
			}
			if tc.kind != "" {
				f.kind = tc.kind
			}
			f.raw["spec"].(map[string]any)["paused"] = true
			f.annotations()["configmap.reloader.stakater.com/reload"] = "app"
			for key, value := range map[string]string{"pause-period": tc.period, "paused-at": tc.since} {
				if value != "" {
					f.annotations()[domain+key] = value
				}
			}
			assert.Equal(t, tc.want, f.explain().Pending)
			assert.Contains(t, f.text(t), "A new template does not replace the running pods by itself: "+tc.want+".\n")
		})
	}
}

func TestReloadThatIsDueWaitsForTheRefractoryPeriod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last, refractory time.Duration
		want             string
	}{
		"within the period": {5 * time.Minute, time.Hour, "configmap/app modified; not before 2026-01-02T03:59:05Z, by --refractory"},
		"after the period":  {5 * time.Minute, 5 * time.Minute, "configmap/app modified"},
		"no period":         {5 * time.Minute, 0, "configmap/app modified"},
		"a wrong clock":     {-time.Minute, time.Hour, "configmap/app modified"},
	} {
		f := newFixture(t)
		f.in.States[app] = f.state("2", "b")
		f.in.Refractory = tc.refractory
		f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
			Time: now.Add(-tc.last), Hash: f.hash, Cause: record.CauseConfigChange,
		}.String()
		assert.Equal(t, tc.want, f.explain().Reason, name)
		f.in.States[app] = f.state("1", "a")
		assert.NotContains(t, f.explain().Reason, "refractory", "nothing is due")
	}
}
