package webhook_test

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// Before the config objects of a namespace are listed, an unlisted match annotation or object may exist: it is not absent.
func TestUnlistedNamespaceIsAFailedRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newHandler(t, w, func(o *webhook.Options) {
		o.Reader.Dialects = append(o.Reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		o.Reader.Objects = func(string) (annotation.Objects, error) { return nil, errors.New("the namespace is not listed yet") }
	}, logr.Discard())
	answer := responseOf(t, post(s.handler, []byte(review(`"operation":"CREATE","object":{"metadata":{"annotations":`+
		`{"configmap.reloader.stakater.com/reload":"app"}},"spec":{"template":{}}}`))))
	assert.True(t, answer.Allowed)
	require.Len(t, answer.Warnings, 1)
	assert.Contains(t, answer.Warnings[0], "the namespace is not listed yet")
	assert.Equal(t, 1, decisions(t, s, "create", "unread"))
	assert.Nil(t, answer.PatchType, "it is adopted later")
}
