package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestPreflightReportsMissingRightsOnce(t *testing.T) {
	t.Parallel()
	denied, failing, leads, questions := map[string]bool{"list": true, "patch": true}, false, false, 0
	recorder := events.NewFakeRecorder(10)
	p := &preflight{
		ask: func(_ context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
			questions++
			if failing {
				return false, errors.New("no answer")
			}
			return !denied[right.Verb], nil
		},
		location: "configmap:a/b", leads: func() bool { return leads }, recorder: recorder, log: logr.Discard(),
		regarding: func(context.Context) *corev1.ObjectReference {
			return &corev1.ObjectReference{Kind: "Deployment", Name: "d"}
		},
	}
	now := time.Now()
	look := func(after time.Duration) []string {
		now = now.Add(after)
		p.look(t.Context(), now)
		var said []string
		for {
			select {
			case one := <-recorder.Events:
				said = append(said, one)
			default:
				return said
			}
		}
	}
	assert.Empty(t, look(0), "nothing is configured")
	assert.Zero(t, questions)

	p.Configure([]referent.Definition{{ID: "a", GVR: schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "as"}, Publish: true}})
	failing = true
	assert.Empty(t, look(0), "no answer says nothing")
	failing = false
	assert.Empty(t, look(rightsLook), "it does not lead")
	leads = true
	missing := "Warning RightsMissing rights on custom resources are missing: list, patch on as.a.io; print them with pod-reloader roles --config configmap:a/b, and bind them to the ServiceAccount of the installation"
	assert.Equal(t, []string{missing}, look(rightsLook))
	before := questions
	assert.Empty(t, look(rightsLook))
	assert.Equal(t, before, questions, "it is asked again after a minute")
	assert.Empty(t, look(rightsAgain), "it is still the same")
	assert.Greater(t, questions, before)
	assert.Equal(t, []string{missing}, look(blindAgain), "the API server forgets Events")

	denied = nil
	assert.Equal(t, []string{"Normal RightsGranted all rights on custom resources are granted"}, look(rightsAgain))
	before = questions
	assert.Empty(t, look(time.Hour))
	assert.Equal(t, before, questions, "nothing is missing, and nothing is asked")
}
