package act

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestVerifiedReloadWritesTheRevisionDigest(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	const web = "deployments/shop/web" // lists " extra ,app,extra,, late" and "tls,db , tls"
	line := func(kind, name string) string {
		meta := world.Section(f.get(kind+"s/shop/"+name), "metadata")
		return fmt.Sprintf("%s/shop/%s/%s.%s\n", kind, name, meta["uid"], meta["resourceVersion"])
	}
	text := line("configmap", "extra") + line("configmap", "app") + line("configmap", "extra") + "configmap/shop/late/\n" +
		line("secret", "tls") + line("secret", "db") + line("secret", "tls")
	sum := sha256.Sum256([]byte(text))
	want := hex.EncodeToString(sum[:])

	require.NoError(t, f.do("verified-reload", web, "attempts", "1"))
	assert.Equal(t, want, world.Annotations(f.get(web))[dummy])

	world.Section(f.get(web), "metadata")["generation"] = int64(7)
	require.NoError(t, f.do("verified-reload", web, "attempts", "1", "bound", "true"))
	assert.Equal(t, want+"@7", world.Annotations(f.get(web))[dummy])

	require.NoError(t, f.do("ssa-verified-reload", web, "attempts", "1"))
	assert.Equal(t, applyPatch, f.requests[len(f.requests)-1].ContentType)
	assert.Equal(t, want, world.Annotations(f.decode(f.requests[len(f.requests)-1].Body))[dummy])
}

func TestVerifiedReloadIsTriedAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		conflicts := 2
		f.reject = func(r Request) *Response {
			if r.Method != http.MethodPatch || conflicts == 0 {
				return nil
			}
			conflicts--
			answer := rejection(409, "Conflict")
			return &answer
		}
		require.NoError(t, f.do("verified-reload", cart, "attempts", "3"))
		conflicts = 2
		err := f.do("verified-reload", cart, "attempts", "2")
		assert.True(t, rejectedFor(err, "Conflict"), err)
	})
}

func TestVerifiedReloadWithoutListsIsSkipped(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("opt-out", cart))
	assert.ErrorIs(t, f.do("verified-reload", cart, "attempts", "1"), ErrSkipped)
}

func TestStripRemovesAllManagedAnnotationsAndNoList(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	f.stamp(cart)
	world.Annotations(f.get(cart))[pausedAt] = "2026-01-02T03:04:05Z"
	require.NoError(t, f.do("strip-annotations", cart, "times", "1", "every", "0s"))
	annotations := world.Annotations(f.get(cart))
	assert.NotContains(t, annotations, pausedAt)
	assert.NotContains(t, annotations, Prefix+"last-reload")
	assert.Contains(t, annotations, listOfConfigMaps)
	assert.Equal(t, world.Object{"example.com/scrape": "true"}, world.Annotations(world.Section(f.get(cart), "spec", "template")))
	assert.ErrorIs(t, f.do("strip-annotations", cart, "times", "1", "every", "0s"), ErrSkipped)
}

func TestHandEditSetsAndRemovesAManagedAnnotation(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	template := func() world.Object { return world.Annotations(world.Section(f.get(cart), "spec", "template")) }
	require.NoError(t, f.do("edit-managed-annotation", cart, "annotation", "template/config-hash", "value", "garbage"))
	assert.Equal(t, "garbage", template()[Prefix+"config-hash"])
	require.NoError(t, f.do("remove-managed-annotation", cart, "annotation", "template/config-hash"))
	assert.NotContains(t, template(), Prefix+"config-hash")
}

func TestCopyHasTheAnnotationsAndPodsOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	f.stamp(cart)
	require.NoError(t, f.do("copy-workload", cart, "to", "deployments/shop/cart-copy"))
	fresh := f.get("deployments/shop/cart-copy")
	assert.Contains(t, world.Annotations(fresh), Prefix+"last-reload")
	assert.Equal(t, "0a1b", world.Annotations(world.Section(fresh, "spec", "template"))[Prefix+"config-hash"])
	assert.Equal(t, world.Object{"app": "cart-copy"}, world.Section(fresh, "spec", "selector", "matchLabels"))
	assert.Equal(t, world.Object{"app": "cart-copy"}, world.Section(fresh, "spec", "template", "metadata", "labels"))
	assert.NotEqual(t, world.Section(f.get(cart), "metadata")["uid"], world.Section(fresh, "metadata")["uid"])
	assert.ErrorIs(t, f.do("copy-workload", cart, "to", "deployments/shop/cart-copy"), ErrSkipped)
	require.NoError(t, f.do("release", "deployments/shop/cart-copy", "version", "2"), "a copy has its original's container")
}

func TestRecreatedConfigHasEqualContentAfterThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		before, start := f.get("secrets/shop/db"), time.Now()
		require.NoError(t, f.do("recreate-config", "secrets/shop/db", "pause", "2s"))
		after := f.get("secrets/shop/db")
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.Equal(t, before["data"], after["data"])
		assert.NotEqual(t, world.Section(before, "metadata")["uid"], world.Section(after, "metadata")["uid"])
	})
}

func TestEditBackRestoresTheOldValueOrItsAbsence(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"greeting", "added"} {
		f := newRecorder(t)
		before := f.encode(world.Section(f.get("configmaps/shop/app"), "data"))
		require.NoError(t, f.do("edit-back", "configmaps/shop/app", "key", key, "value", "B", "pause", "0s"))
		assert.JSONEq(t, string(before), string(f.encode(world.Section(f.get("configmaps/shop/app"), "data"))))
		assert.Equal(t, []string{http.MethodGet, http.MethodPatch, http.MethodPatch}, f.methods())
	}
}

func TestBinaryMoveKeepsTheBytes(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	const app = "configmaps/shop/app"
	require.NoError(t, f.do("edit-config-binary", app, "key", "greeting"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("hello")), world.Section(f.get(app), "binaryData")["greeting"])
	assert.NotContains(t, world.Section(f.get(app), "data"), "greeting")
	require.NoError(t, f.do("edit-config-binary", app, "key", "greeting"))
	assert.Equal(t, "hello", world.Section(f.get(app), "data")["greeting"])
	assert.NotContains(t, f.get(app), "binaryData")
}

func TestHammerWritesAtItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		start := time.Now()
		require.NoError(t, f.do("hammer-config", "secrets/shop/db", "key", "password", "n", "11", "every", "400ms"))
		assert.Equal(t, 4*time.Second, time.Since(start))
		assert.Len(t, f.requests, 11)
		assert.Equal(t, "h10", f.secretValue("secrets/shop/db", "password"))
	})
}

func TestUpdateIsTriedAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		conflicts := 1
		f.reject = func(r Request) *Response {
			if r.Method != http.MethodPut || conflicts == 0 {
				return nil
			}
			conflicts--
			answer := rejection(409, "Conflict")
			return &answer
		}
		require.NoError(t, f.do("edit-config", "secrets/shop/db", "key", "password", "value", "new", "how", "put"))
		assert.Equal(t, []string{http.MethodGet, http.MethodPut, http.MethodGet, http.MethodPut}, f.methods())
		assert.Equal(t, "new", f.secretValue("secrets/shop/db", "password"))
		assert.Equal(t, "shop", f.secretValue("secrets/shop/db", "user"))
	})
}

func TestRotatedKeyIsTheNewestAndALostOneIsAlone(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	const ring = "secrets/pod-reloader/pod-reloader-digest-key"
	f.put(ring, world.Object{"data": world.Object{"0001": "b2xk"}})
	require.NoError(t, f.do("rotate-key", ring, "seed", "5"))
	data := world.Section(f.get(ring), "data")
	assert.Equal(t, "b2xk", data["0001"])
	assert.Len(t, f.secretValue(ring, "0002"), 32)

	require.NoError(t, f.do("lose-key", ring, "seed", "6"))
	assert.Len(t, world.Section(f.get(ring), "data"), 1)
	assert.NotEqual(t, data["0002"], world.Section(f.get(ring), "data")["0001"])
}

func TestRewrittenListHasTheSameNames(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"reverse", "spaces", "duplicates"} {
		assert.Subset(t, []string{"a", "b", "c"}, world.Items(rewritten(" a,b,,c ", how)), how)
		assert.Subset(t, world.Items(rewritten(" a,b,,c ", how)), []string{"a", "b", "c"}, how)
		assert.NotEqual(t, " a,b,,c ", rewritten(" a,b,,c ", how))
	}
}
