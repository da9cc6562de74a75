package configstate_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestObjectOfAWatchThatNeverWorkedIsUnseenUntilItIsRead(t *testing.T) {
	t.Parallel()
	for name, learn := range map[string]func(*fixture, []reference.Ref) error{
		"by the loop":    func(f *fixture, refs []reference.Ref) error { return f.Learn(t.Context(), "a", refs) },
		"by the webhook": func(f *fixture, refs []reference.Ref) error { return f.Admission().Learn(t.Context(), "a", refs) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			db := secret("a", "db", "x")
			db.Annotations = map[string]string{"ours": "yes"}
			s.put(db)
			s.put(configMap("a", "app", "x"))
			s.refusing(lists, http.StatusForbidden)
			f := newFixture(t, s, func(o *configstate.Options) {
				o.OwnAnnotations = ours
			}).start(t)
			assert.Equal(t, cm("app"), f.next(t).Ref)
			require.True(t, f.Listed("a"), "it may not be listed")
			assert.True(t, f.Unseen("a", sec("db")), "its watch has never listed it")
			assert.True(t, f.Unseen("a", sec("none")), "there may be one")
			assert.False(t, f.Unseen("a", cm("app")), "its watch has listed it")
			assert.False(t, f.Unseen("a", cm("none")), "it is listed that there is none")

			require.NoError(t, learn(f, []reference.Ref{sec("db"), sec("none")}))
			assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Added}, f.next(t))
			assert.False(t, f.Unseen("a", sec("db")), "it was read")
			assert.True(t, f.Unseen("a", sec("none")), "names are not remembered: any tenant can write some")
			assert.Equal(t, map[string]string{"ours": "yes"}, f.Annotations("a", sec("db")))

			s.refusing(lists, http.StatusForbidden)
			s.refusing("/api/v1/namespaces/a/secrets", http.StatusForbidden)
			require.NoError(t, learn(f, []reference.Ref{sec("db")}), "it is known")
			err := learn(f, []reference.Ref{sec("none")})
			require.Error(t, err)
			assert.Len(t, configstate.ReadErrors(err), 1)
			assert.Equal(t, 1, strings.Count(err.Error(), "read secret/none"))
		})
	}
}

func TestObjectOutOfScopeIsNotUnseen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, newServer(t), func(o *configstate.Options) {
		o.Namespaces, o.Without, o.SecretProviderClasses = []string{"a"}, []reference.Kind{reference.Secret}, true
	})
	assert.True(t, f.Unseen("a", cm("app")), "it is not listed yet")
	assert.False(t, f.Unseen("b", cm("app")), "nothing reads there")
	assert.False(t, f.Unseen("a", sec("db")), "nothing looks at this kind")
	assert.False(t, f.Unseen("a", reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}), "nothing grants the permission to get it")
}

func TestObjectThatIsLearnedWhileARequestWaitsIsNotReadAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "db", "x"))
	s.refusing(lists, http.StatusForbidden)
	var others, read atomic.Int64
	ended, answer := make(chan struct{}), make(chan struct{})
	s.holding(func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/db") {
			read.Add(1)
			<-answer
			return
		}
		others.Add(1)
		<-ended
	})
	t.Cleanup(func() { close(ended) })
	f := newFixture(t, s, nil).start(t)
	learn := func(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
		return nil, f.Learn(ctx, namespace, refs)
	}
	inBackground(t, learn, "a", names(23))
	require.Eventually(t, func() bool { return others.Load() == 23 }, wait, time.Millisecond, "one less than a namespace can have")
	done := make(chan error, 2)
	for waiting := range 2 {
		go func() { done <- f.Learn(t.Context(), "a", []reference.Ref{sec("db")}) }()
		require.Eventually(t, func() bool { return read.Load() == 1 && f.Waiting() == waiting }, wait, time.Millisecond)
	}
	close(answer)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	assert.Equal(t, int64(1), read.Load())
	assert.False(t, f.Unseen("a", sec("db")), "it was read")
}
