package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/keyring"
)

// secretOfKeys is a Secret of digest keys with a problem.
type secretOfKeys struct {
	loaded  bool
	problem string
}

func (s *secretOfKeys) Ready() bool     { return s.loaded }
func (s *secretOfKeys) Problem() string { return s.problem }

// newKeys returns what looks at a digest key, in place of watches.
func newKeys() (*watches, *secretOfKeys) {
	w, key := newWatches(), &secretOfKeys{loaded: true}
	w.failing, w.ended = keyring.EventUnusable, keyring.EventUsable
	w.reportsKey(key)
	return w, key
}

func TestDigestKeyThatCannotBeUsedIsReportedOnce(t *testing.T) {
	t.Parallel()
	w, key := newKeys()
	assert.Empty(t, w.pass(t, time.Hour), "it can be used")
	key.problem = "the Secret is not usable (it is empty)"
	sent := w.pass(t, 40*time.Minute)
	require.Len(t, sent, 1)
	assert.Equal(t, "Warning DigestKeyUnusable the Secret is not usable (it is empty)", sent[0])
	assert.Len(t, w.pass(t, 20*time.Minute), 1, "the API server forgets Events")
	key.problem = "the Secret is not usable (a key is short)"
	assert.Len(t, w.pass(t, time.Minute), 1, "another problem")
	key.problem = ""
	sent = w.pass(t, keyLookInterval)
	require.Len(t, sent, 1)
	assert.Equal(t, "Normal DigestKeyUsable the Secret of the digest key is usable again", sent[0])
	assert.Empty(t, w.pass(t, 2*time.Hour))
	assert.Empty(t, w.lines, "the keyring logs it")
}

func TestNewLeaderEndsTheReportAboutTheDigestKeyOnceItHasOne(t *testing.T) {
	t.Parallel()
	w, key := newKeys()
	w.inherited, key.loaded = true, false
	assert.Empty(t, w.pass(t, time.Hour), "whether it can be used is not known")
	key.loaded = true
	sent := w.pass(t, keyLookInterval)
	require.Len(t, sent, 1)
	assert.Contains(t, sent[0], "Normal DigestKeyUsable")
}

// A replica starts while the API server is away.
func TestDigestKeyIsReportedOnlyAfterSomeTime(t *testing.T) {
	t.Parallel()
	w, key := newKeys()
	for range 3 {
		key.problem = "cannot read the Secret"
		assert.Empty(t, w.pass(t, keyPatience-keyLookInterval))
		key.problem = ""
		assert.Empty(t, w.pass(t, keyLookInterval))
	}
	key.problem = "cannot read the Secret"
	assert.Len(t, w.pass(t, keyPatience+keyLookInterval), 1)
}
