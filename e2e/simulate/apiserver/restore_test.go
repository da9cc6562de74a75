package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// lossy stores a ConfigMap "kept", one that is edited and one that is deleted after the snapshot, and one that is created after it. It
// returns the time of the snapshot.
func lossy(t *testing.T, s *apiserver.Server) time.Time {
	t.Helper()
	for _, name := range []string{"kept", "edited", "deleted"} {
		set(t, s, name, "old")
	}
	snapshot := time.Now()
	sleep(time.Minute)
	set(t, s, "edited", "new")
	set(t, s, "created", "new")
	require.True(t, s.Remove(worldKey("configmaps", "deleted")), "the object was stored")
	sleep(time.Minute)
	return snapshot
}

func versionOf(o world.Object) string { return world.Text(o, "metadata", "resourceVersion") }

func TestRestoreBringsAnEarlierStateBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var commits []world.Commit
		s := server(t, func(o *apiserver.Options) { o.OnCommit = func(c world.Commit) { commits = append(commits, c) } })
		snapshot := lossy(t, s)
		before := s.List(world.ConfigMaps, "shop")
		commits = nil
		back := s.Restore(snapshot)

		after := map[string]string{}
		for _, o := range s.List(world.ConfigMaps, "shop") {
			after[world.Text(o, "metadata", "name")] = world.Text(o, "metadata", "labels", "l") + "@" + versionOf(o)
		}
		assert.Equal(t, map[string]string{"kept": "old@3", "edited": "old@4", "deleted": "old@5"}, after)
		assert.Len(t, before, 3)
		changes := map[string][2]bool{}
		for _, c := range commits {
			assert.Equal(t, back, c.Restored)
			assert.Equal(t, s.Version(), c.Version, "the whole restore is one version")
			assert.Nil(t, c.Call)
			changes[c.Key.Name] = [2]bool{c.Old != nil, c.New != nil}
		}
		assert.Equal(t, map[string][2]bool{"edited": {true, true}, "created": {true, false}, "deleted": {false, true}}, changes)
		assert.Equal(t, "5", get(t, s, configMaps).object().GetResourceVersion(), "lists are as of the snapshot")
	})
}

func TestVersionsGoOnFromTheSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		snapshot := lossy(t, s) // versions 6 to 8: edited, created, deleted
		last := s.Version()
		s.Restore(snapshot)
		assert.Greater(t, s.Version(), last, "to the models, they never go back")
		assert.Equal(t, "6", versionOf(set(t, s, "other", "1")), "a version is used for other content")
		assert.Equal(t, "8", versionOf(set(t, s, "created", "1")), "7 is one that the object has had")
		assert.Equal(t, "9", versionOf(set(t, s, "kept", "1")))
		s.Restore(snapshot)
		s.ReuseVersions()
		assert.Equal(t, "7", versionOf(set(t, s, "created", "2")), "other objects were written meanwhile")
		assert.Equal(t, "9", versionOf(set(t, s, "kept", "2")))
		assert.Equal(t, "10", versionOf(set(t, s, "edited", "2")), "6 is over")
		assert.Equal(t, http.StatusConflict, put(t, s, configMaps+"/edited", `{"metadata":{"name":"edited","resourceVersion":"4"}}`).Code)
		assert.Equal(t, http.StatusOK, put(t, s, configMaps+"/edited", `{"metadata":{"name":"edited","resourceVersion":"10"}}`).Code)
	})
}

func TestNoStateFromBeforeTheLastRestoreComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		snapshot := lossy(t, s)
		s.Restore(snapshot)
		set(t, s, "kept", "later")
		s.Restore(snapshot.Add(90 * time.Second)) // a moment of the lost state
		var names []string
		for _, o := range s.List(world.ConfigMaps, "shop") {
			names = append(names, world.Text(o, "metadata", "name")+"="+world.Text(o, "metadata", "labels", "l"))
		}
		assert.Equal(t, []string{"deleted=old", "edited=old", "kept=old"}, names)
	})
}

func TestReadsOfVersionsAfterARestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		snapshot := lossy(t, s)
		running := watch(t, s, configMaps+"?watch=1&resourceVersion=8")
		assert.Empty(t, running.next())
		s.Restore(snapshot)
		assert.Equal(t, []string{"end"}, running.next())
		assert.True(t, <-running.aborted, "the server has cut the watch")

		assert.Equal(t, []string{"ERROR 410 Expired", "end"}, watch(t, s, configMaps+"?watch=1&resourceVersion=4").next())
		assert.Equal(t, http.StatusGatewayTimeout, get(t, s, configMaps+"?resourceVersion=8").Code)
		assert.Contains(t, get(t, s, configMaps+"?resourceVersion=8").failure().Message, "Too large resource version: 8, current: 5")
		onwards, ahead := watch(t, s, configMaps+"?watch=1&resourceVersion=5"), watch(t, s, configMaps+"?watch=1&resourceVersion=7")
		set(t, s, "first", "1")
		set(t, s, "second", "1")
		set(t, s, "third", "1")
		assert.Equal(t, []string{"ADDED first", "ADDED second", "ADDED third"}, onwards.next())
		assert.Equal(t, []string{"ADDED third"}, ahead.next(), "what was written below the version of the watch never comes")
		assert.Equal(t, []string{"ADDED third"}, watch(t, s, configMaps+"?watch=1&resourceVersion=7").next())
	})
}

func TestRequestUnderWayStoresNothingAfterARestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goes := make(chan struct{})
		s := server(t, func(o *apiserver.Options) {
			o.Gate = func(context.Context, *world.Call) apiserver.Fate {
				<-goes
				return apiserver.Fate{}
			}
		})
		snapshot := lossy(t, s)
		codes := make(chan int, 2)
		go func() { codes <- post(t, s, configMaps, `{"metadata":{"name":"late"}}`).Code }()
		go func() { codes <- merge(t, s, configMaps+"/kept", `{"metadata":{"labels":{"l":"late"}}}`).Code }()
		synctest.Wait()
		s.Restore(snapshot)
		close(goes)
		assert.Equal(t, []int{http.StatusGatewayTimeout, http.StatusGatewayTimeout}, []int{<-codes, <-codes})
		assert.Len(t, s.List(world.ConfigMaps, "shop"), 3)
	})
}

// Another attempt would follow the one in which the webhook has failed.
func TestRequestThatARestoreEndsIsRejectedByNoWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *apiserver.Server
		var replies []world.Reply
		var snapshot time.Time
		restores := func(context.Context, *admissionv1.AdmissionRequest) (string, error) {
			if snapshot.IsZero() {
				return "", nil
			}
			s.Restore(snapshot)
			return "", errors.New("refused")
		}
		s = server(t, with(webhook("w.example.com", restores)), func(o *apiserver.Options) {
			o.OnReply = func(r world.Reply) { replies = append(replies, r) }
		})
		post(t, s, deployments, cartBody).object()
		created := time.Now()
		sleep(time.Minute)
		merge(t, s, cart, `{"metadata":{"labels":{"l":"1"}}}`).object()
		snapshot = created
		assert.Equal(t, http.StatusGatewayTimeout, merge(t, s, cart, `{"metadata":{"labels":{"l":"2"}}}`).Code)
		assert.Empty(t, replies[len(replies)-1].Webhook)
	})
}
