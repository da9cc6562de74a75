package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// unresolvedReader reads workloads while nothing is known of what their expressions match.
func unresolvedReader(t *testing.T) stamp.Reader {
	t.Helper()
	reader := bothDialects(t)
	reader.Objects = func(string) (annotation.Objects, error) {
		return annotation.Unlisted{}, errors.New("matching takes long")
	}
	return reader
}

// The expressions of another workload can take the index a while, right after the loop has looked at this one.
func TestDirectStampWaitsForWhatCannotBeMatchedNow(t *testing.T) {
	t.Parallel()
	now, ring := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), digesttest.Ring(t, "a")
	c, out := &stored{uid: "u1", hash: "before", annotations: map[string]string{
		reloadList: "team-.*", annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "config-record": recordOf(ring, "before"),
	}, webhook: func(written string) string { return written }}, &reloadtest.Outbox{}
	gathered := absentApp(t, c, ring, now)
	gathered.Reader = unresolvedReader(t)
	actions := newActions(Options{Gather: gathered, Client: c, InScope: notOther}, out)
	s := reloadtest.Reloaded(pausedDeployment(t, 0, false, ""), reloadtest.ReloadAt(now.Add(-time.Hour), "before"))
	assert.Positive(t, actions.stamps.write(t.Context(), s, policy.Verdict{}).close(t.Context(), actions.base).RequeueAfter, "it is tried again")
	assert.Zero(t, c.writes, "a stamp would leave out what the expression matches")
	assert.Empty(t, out.Notes(), "it passes")

	actions.gather.Reader = bothDialects(t)
	actions.stamps.write(t.Context(), s, policy.Verdict{}).close(t.Context(), actions.base)
	assert.Equal(t, 1, c.writes)
}

func TestRunWaitsForWhatCannotBeMatchedNow(t *testing.T) {
	t.Parallel()
	b := &batch{uid: "u1", jobs: map[string]int{}, annotations: map[string]string{reloadList: "app,team-.*"}}
	actions := newActions(Options{Gather: gather.Gatherer{Reader: unresolvedReader(t), APIReader: b}, Client: b, InScope: notOther}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	ended := actions.runs.run(t.Context(), &s, verdict, contentOf("hash"))
	require.NotNil(t, ended, "the reload waits")
	assert.Positive(t, ended.close(t.Context(), actions.base).RequeueAfter)
	assert.Empty(t, b.jobs)

	actions.runs.gather.Reader = bothDialects(t)
	assert.Nil(t, actions.runs.run(t.Context(), &s, verdict, contentOf("hash")))
	assert.Len(t, b.jobs, 1)
}
