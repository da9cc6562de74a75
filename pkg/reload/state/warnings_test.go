package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestSameWarningIsGivenOnce(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &warnings{}
	news := func(reason, text string, at time.Time) bool {
		_, news := m.Warn(key, reason, text, at)
		return news
	}
	assert.False(t, news("ConfigMissing", "", t0), "nothing to report")
	assert.Empty(t, m.entries, "and nothing to remember")
	assert.True(t, news("ConfigMissing", "a", t0), "the first warning of this reason")
	assert.True(t, m.IsWarned(key, "ConfigMissing", DigestOf("a")), "it was given with this text")
	assert.False(t, news("ConfigMissing", "a", t0.Add(time.Minute)), "the same again is no news")
	assert.True(t, news("ConfigMissing", "a", t0.Add(WarnAgain)), "the API server has forgotten the Event")
	assert.True(t, news("ReloadHeld", "a", t0), "another reason is news")
	assert.True(t, news("ConfigMissing", "b", t0), "another text is")
	assert.False(t, m.IsWarned(key, "ConfigMissing", DigestOf("a")), "another text has replaced it")
	assert.False(t, news("ConfigMissing", "", t0), "nothing to report")
	assert.False(t, m.IsWarned(key, "ConfigMissing", DigestOf("b")), "it has passed")
	assert.True(t, news("ConfigMissing", "b", t0), "it is back")
}

func TestWarningIsGivenAgainAfterASuccess(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &warnings{}
	for reason, warn := range map[string]func(workload.Key, string, string, time.Time) (time.Duration, bool){
		"ReloadFailed": m.Fail, "ConfigMissing": m.Warn,
	} {
		_, news := warn(key, reason, "a", t0)
		require.True(t, news, "the first warning with the reason %s", reason)
		require.True(t, m.IsWarned(key, reason, DigestOf("a")), "the text with the reason %s is remembered", reason)
	}
	_, news := m.Fail(key, "ReloadFailed", "a", t0)
	require.False(t, news, "the same again is no news")
	m.Recovered(key)
	_, news = m.Fail(key, "ReloadFailed", "a", t0.Add(time.Second))
	assert.True(t, news, "another reload failed")
	_, news = m.Warn(key, "ConfigMissing", "a", t0.Add(time.Second))
	assert.False(t, news, "that is still as it was")
}

// What fails, succeeds and fails again, or fails with another text each time, is reported at a bounded rate.
func TestWarningsAreSpacedOut(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &warnings{}
	warn := func(text string, at time.Time) time.Duration {
		delay, news := m.Fail(key, "ReloadFailed", text, at)
		assert.True(t, news, "no warning was given since the last success: %q", text)
		m.Recovered(key)
		return delay
	}
	for range warnAtOnce {
		assert.Zero(t, warn("a", t0))
	}
	assert.Equal(t, warnEvery, warn("a", t0))
	assert.Equal(t, warnEvery-time.Second, warn("b", t0.Add(time.Second)), "it replaces the one that waits, and is no later")
	assert.Equal(t, warnEvery, warn("c", t0.Add(warnEvery)))
	late := t0.Add(time.Hour)
	for range warnAtOnce {
		assert.Zero(t, warn("a", late), "a long quiet time")
	}
	assert.Equal(t, warnEvery, warn("a", late))
}

func TestWarningIsRepeatedWhenTheFirstOfThemMayBe(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &warnings{}
	assert.Zero(t, m.Again(key, t0))
	m.Warn(key, "ConfigMissing", "a", t0)
	m.Warn(key, "ReloadHeld", "b", t0.Add(time.Minute))
	assert.Equal(t, time.Hour, m.Again(key, t0))
	m.Warn(key, "ConfigMissing", "", t0.Add(2*time.Minute))
	assert.Equal(t, 59*time.Minute, m.Again(key, t0.Add(2*time.Minute)), "the other one has passed")
	assert.Zero(t, m.Again(key, t0.Add(61*time.Minute)), "what was not repeated then is not looked at for ever")
}

// A check takes reads, whether or not an Event comes of it.
func TestChecksAreSpacedOut(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		reported bool
		atOnce   int
	}{
		"what is checked is reported": {reported: true, atOnce: warnAtOnce}, "nothing is": {atOnce: checkAtOnce},
	} {
		m := &warnings{}
		check := func(text string, at time.Time) bool {
			due := m.Check(key, "ConfigMissing", text, at)
			if due && c.reported {
				delay, news := m.Warn(key, "ConfigMissing", text, at)
				require.True(t, news, name)
				require.Zero(t, delay, "what is checked now is written now: %s", name)
			}
			return due
		}
		require.False(t, check("", t0), "without a text, there is nothing to report: %s", name)
		require.Empty(t, m.entries, "there is nothing to remember")
		for i := range c.atOnce {
			require.True(t, check(fmt.Sprint(i), t0), name)
		}
		last, soon := fmt.Sprint(c.atOnce-1), t0.Add(time.Second)
		assert.Equal(t, c.reported, m.IsWarned(key, "ConfigMissing", DigestOf(last)), name)
		assert.False(t, check("a", soon), "too early: %s", name)
		assert.False(t, m.IsWarned(key, "ConfigMissing", DigestOf(last)), "it has passed: %s", name)
		assert.False(t, check(last, soon), "it is back, and as early: %s", name)
		assert.Equal(t, warnEvery-time.Second, m.Again(key, soon), name)
		assert.True(t, check("a", t0.Add(warnEvery)), name)
		assert.False(t, check("b", t0.Add(warnEvery)), "one each minute: %s", name)
		for i := range c.atOnce {
			assert.True(t, check(fmt.Sprint(i), t0.Add(time.Hour)), "a long quiet time: %s", name)
		}
		assert.Equal(t, c.reported, !check(last, t0.Add(2*time.Hour-1)), "the same is no news: %s", name)
		assert.True(t, check(last, t0.Add(3*time.Hour)), "the API server has forgotten the Event: %s", name)
		assert.False(t, check("", t0.Add(3*time.Hour)), "without a text, there is nothing to report: %s", name)
		assert.False(t, m.IsWarned(key, "ConfigMissing", DigestOf(last)), "it has passed: %s", name)
	}
}

// Each workload may have a Warning Event of each reason: no text is kept.
func TestTextsOfWarningsAreNotKept(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &warnings{}
	text := strings.Repeat("x", 100_000)
	_, news := m.Fail(key, "ReloadFailed", text, t0)
	require.True(t, news, "the first failure with this reason")
	assert.Less(t, len(fmt.Sprintf("%+v", *m.entries[key])), 1000)
	assert.True(t, m.IsWarned(key, "ReloadFailed", DigestOf(text)), "the digest of the whole text is kept")
	assert.False(t, m.IsWarned(key, "ReloadFailed", DigestOf(text+"x")), "the digest is not only of the beginning")
}

func TestWarningThatWaitsIsNotPutOffByOneWhoseTimeHasCome(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 20 { // the order of reasons is that of a map
		m := &warnings{}
		m.Warn(key, "ConfigMissing", "app", t0)
		m.Warn(key, "ReloadHeld", "app", t0.Add(time.Second))
		require.Equal(t, time.Second, m.Again(key, t0.Add(WarnAgain)))
	}
}
