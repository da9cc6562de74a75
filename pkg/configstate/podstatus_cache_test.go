package configstate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestPodStatusCacheReportsTheClassesWhoseContentDiffers(t *testing.T) {
	t.Parallel()
	w := &watcher{kind: podStatusKind}
	ws, n := watches{{kind: podStatusKind}: w}, &notifier{now: time.Now}
	var reported []string
	n.add(func(e Event) { reported = append(reported, e.Ref.Name) })
	c := newPodStatusCache(ws, newSyncProgress(ws), n)
	status := func(name, class, version string) podstatus.Status {
		return podstatus.Status{Name: name, UID: name, ResourceVersion: version, Class: class, Objects: map[string]string{"id": version}}
	}
	refs := []reference.Ref{classOf("shop", "a").ref, {Kind: reference.ConfigMap, Name: "a"}}
	observe := func() map[reference.Ref]digest.State {
		states := map[reference.Ref]digest.State{}
		c.observe(states, "shop", refs, digest.Ring{}, false)
		return states
	}

	assert.Empty(t, observe(), "nothing is known before the first listing")
	listed := newPodStatuses()
	listed.put("shop", status("p", "a", "1"))
	c.list(w, listed)
	assert.Equal(t, []string{"a"}, reported)
	assert.Len(t, observe(), 1, "a ConfigMap is none of its objects")

	before := c.beforeRead(w)
	c.put(w, "shop", status("p", "b", "2"))
	assert.Equal(t, []string{"a", "b", "a"}, reported, "the class that the pod mounts now, and the one that it has left")
	c.replace(w, "shop", newPodStatuses(), before)
	assert.Len(t, reported, 3, "a read that began before the watch delivered something is not taken in")
	c.replace(w, "shop", newPodStatuses(), c.beforeRead(w))
	assert.Equal(t, []string{"a", "b", "a", "b"}, reported)
	c.remove(w, "shop", "p")
	assert.Len(t, reported, 4, "it was gone")
}
