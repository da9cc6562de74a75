package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// asker is a permissionCheck in a test.
type asker struct {
	*permissionCheck
	now time.Time
	// denied are the verbs that are not granted; failing says that there is no answer. questions counts them.
	denied    map[string]bool
	failing   bool
	mu        sync.Mutex
	questions int
	leads     bool
	// inherited is the answer about the Events of an earlier leader, asked counts the questions.
	inherited bool
	asked     int
	events    *events.FakeRecorder
}

func newAsker() *asker {
	a := &asker{now: time.Now(), events: events.NewFakeRecorder(10)}
	a.permissionCheck = &permissionCheck{
		ask: func(_ context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
			a.mu.Lock()
			a.questions++
			a.mu.Unlock()
			if a.failing {
				return false, errors.New("no answer")
			}
			return !a.denied[permission.Verb], nil
		},
		location: "configmap:a/b",
		installationReport: installationReport{
			failing: watchhealth.EventPermissionsMissing, ended: watchhealth.EventPermissionsGranted, interval: permissionsLook,
			leads: func() bool { return a.leads }, recorder: a.events, log: logr.Discard(),
			regarding: func(context.Context) *corev1.ObjectReference {
				return &corev1.ObjectReference{Kind: "Deployment", Name: "d"}
			},
			predecessor: predecessor{failing: func(context.Context) (bool, error) {
				a.asked++
				return a.inherited, nil
			}},
		},
	}
	a.look = a.current
	return a
}

// configure takes a configuration with one resource.
func (a *asker) configure() {
	a.Configure([]referent.Definition{{ID: "a", GVR: schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "as"}, Publish: true}})
}

// pass has a check after some time, and returns the Events.
func (a *asker) pass(t *testing.T, after time.Duration) []string {
	t.Helper()
	a.now = a.now.Add(after)
	a.check(t.Context(), a.now)
	var sent []string
	for len(a.events.Events) > 0 {
		sent = append(sent, <-a.events.Events)
	}
	return sent
}

const (
	permissionsMissing = "Warning PermissionsMissing permissions on custom resources are missing: list, patch on as.a.io; print them with " +
		"pod-reloader roles --config configmap:a/b, and bind them to the ServiceAccount of the installation"
	permissionsGranted = "Normal PermissionsGranted all permissions on custom resources are granted"
)

func TestPreflightReportsMissingPermissionsOnce(t *testing.T) {
	t.Parallel()
	a := newAsker()
	a.denied = map[string]bool{"list": true, "patch": true}
	assert.Empty(t, a.pass(t, 0), "nothing is configured")
	assert.Zero(t, a.questions)

	a.configure()
	a.failing = true
	assert.Empty(t, a.pass(t, 0), "no answer says nothing")
	a.failing = false
	assert.Empty(t, a.pass(t, permissionsLook), "it does not lead")
	a.leads = true
	assert.Equal(t, []string{permissionsMissing}, a.pass(t, permissionsLook))
	before := a.questions
	assert.Empty(t, a.pass(t, permissionsLook))
	assert.Equal(t, before, a.questions, "it is asked again after a minute")
	assert.Empty(t, a.pass(t, permissionsAgain), "it is still the same")
	assert.Greater(t, a.questions, before)
	assert.Equal(t, []string{permissionsMissing}, a.pass(t, reportAgain), "the API server forgets Events")

	a.denied = nil
	assert.Equal(t, []string{permissionsGranted}, a.pass(t, permissionsAgain))
	before = a.questions
	assert.Empty(t, a.pass(t, time.Hour))
	assert.Equal(t, before, a.questions, "nothing is missing, and nothing is asked")
	assert.Zero(t, a.asked, "its own Events are newer than those of an earlier leader")
}

// A leader has reported that permissions are missing, and was stopped before they were granted, or before it noticed.
func TestNewLeaderReportsThatPermissionsAreGrantedAfterItsPredecessor(t *testing.T) {
	t.Parallel()
	a := newAsker()
	a.inherited, a.leads = true, true
	assert.Empty(t, a.pass(t, 0), "the configuration was not read")
	a.leads, a.denied = false, map[string]bool{"list": true, "patch": true}
	a.configure()
	assert.Empty(t, a.pass(t, 0), "it does not lead")
	a.denied, a.failing, a.leads = nil, true, true
	a.configure()
	assert.Empty(t, a.pass(t, permissionsLook), "it does not know yet")
	assert.Zero(t, a.asked)
	a.failing = false
	assert.Equal(t, []string{permissionsGranted}, a.pass(t, permissionsLook))
	assert.Empty(t, a.pass(t, time.Hour))
	assert.Equal(t, 1, a.asked)
}

// slow has each question take some time, or until it is given up.
func (a *asker) slow(answer time.Duration) {
	at := a.ask
	a.ask = func(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(answer):
			return at(ctx, permission)
		}
	}
}

// configureMany takes a configuration that needs 3,600 permissions.
func (a *asker) configureMany() {
	for i := range 60 {
		a.namespaces = append(a.namespaces, fmt.Sprint("n", i))
	}
	var definitions []referent.Definition
	for i := range 15 {
		resource := schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: fmt.Sprint("r", i)}
		definitions = append(definitions, referent.Definition{ID: resource.Resource, GVR: resource, Publish: true})
	}
	a.Configure(definitions)
}

func TestManyPermissionsAreAskedForInOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		a.leads, a.denied = true, map[string]bool{"patch": true}
		a.slow(10 * time.Millisecond)
		a.configureMany()
		sent := a.pass(t, 0)
		require.Len(t, sent, 1)
		assert.Contains(t, sent[0], "PermissionsMissing permissions on custom resources are missing: patch on r0.a.io in namespace n0; ")
		assert.Equal(t, 3600, a.questions)
		assert.Less(t, time.Since(a.now), permissionsLook, "some are asked at a time")

		a.pass(t, permissionsAgain)
		assert.Equal(t, 3600+900, a.questions, "only missing permissions are asked for again")
		a.denied = nil
		assert.Equal(t, []string{permissionsGranted}, a.pass(t, permissionsAgain))
	})
}

func TestUnansweredQuestionsForPermissionsAreRepeatedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, tries, lines := newAsker(), 0, 0
		a.slow(time.Hour)
		a.log = funcr.New(func(string, string) { lines++ }, funcr.Options{})
		at := a.ask
		a.ask = func(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
			a.mu.Lock()
			tries++
			a.mu.Unlock()
			return at(ctx, permission)
		}
		a.configureMany()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, a.Start(ctx))
		assert.Equal(t, 1, lines, "it is logged once")
		assert.Less(t, tries, 200, "a few at a time, at most every five minutes in the end")
		assert.Greater(t, tries, 10, "it is tried again")
	})
}

func TestPermissionsOfANewConfigurationAreAskedForThoughTheLastIsBeingAsked(t *testing.T) {
	t.Parallel()
	a := newAsker()
	at, once := a.ask, sync.Once{}
	a.ask = func(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
		once.Do(a.configureMany)
		return at(ctx, permission)
	}
	a.configure()
	a.pass(t, 0)
	assert.Equal(t, 4, a.questions)
	a.pass(t, permissionsLook)
	assert.Equal(t, 4+3600, a.questions)
	a.pass(t, permissionsLook)
	assert.Equal(t, 4+3600, a.questions)
}

// A permission to get that is withdrawn shows in no watch, and the graph answers in place of the reads.
func TestPermissionsAreAskedForAgainAfterARefusedRead(t *testing.T) {
	t.Parallel()
	key := func(resource string) referent.Key {
		return referent.Key{Group: "a.io", Resource: resource, Namespace: "shop", Name: "x"}
	}
	a := newAsker()
	a.leads = true
	a.configure()
	assert.Empty(t, a.pass(t, 0), "nothing is missing")
	before := a.questions
	a.denied = map[string]bool{"get": true}
	a.Refused(key("as"))
	assert.Empty(t, a.pass(t, permissionsLook))
	assert.Equal(t, before, a.questions, "at most once a minute")
	sent := a.pass(t, permissionsAgain)
	require.Len(t, sent, 1)
	assert.Contains(t, sent[0], "Warning PermissionsMissing permissions on custom resources are missing: get on as.a.io; ")

	before = a.questions
	for range 10 {
		a.Refused(key("as"))
		assert.Empty(t, a.pass(t, permissionsAgain))
	}
	assert.Equal(t, before+10, a.questions, "of what is known to be missing, that alone is asked")
	a.Refused(key("others"))
	a.pass(t, permissionsAgain)
	assert.Equal(t, before+10+4, a.questions, "it can be another one")

	a.denied = nil
	assert.Equal(t, []string{permissionsGranted}, a.pass(t, permissionsAgain))
	a.failing = true
	a.Refused(key("as"))
	a.pass(t, permissionsAgain)
	a.failing = false
	before = a.questions
	a.pass(t, permissionsAgain)
	assert.Equal(t, before+4, a.questions, "it was not answered")
	before = a.questions
	a.pass(t, time.Hour)
	assert.Equal(t, before, a.questions)
}
