package webhook_test

import (
	"errors"
	"fmt"
	"strings"
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
	assert.True(t, answer.Allowed, "a write passes where objects cannot be read")
	require.Len(t, answer.Warnings, 1)
	assert.Contains(t, answer.Warnings[0], "the namespace is not listed yet")
	assert.Equal(t, 1, decisions(t, s, "create", "unread"))
	assert.Nil(t, answer.PatchType, "it is adopted later")
}

// A compact Record names nothing, so that nothing is read: the write passes without a stamp all the same, and is counted as such.
func TestReleaseBesideACompactRecordIsUnreadWhileNothingIsListed(t *testing.T) {
	t.Parallel()
	s := newHandler(t, newWorld(t), func(o *webhook.Options) {
		o.Reader.Dialects = append(o.Reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		o.Reader.Objects = func(string) (annotation.Objects, error) { return nil, errors.New("the namespace is not listed yet") }
	}, logr.Discard())
	hash := "1c9e04ab" + strings.Repeat("0", 56)
	object := func(image string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"configmap.reloader.stakater.com/reload":"app-.*","%[1]sconfig-record":"v1:%[2]s:1c9e04ab:*A%[3]s"}},`+
			`"spec":{"template":{"metadata":{"annotations":{"%[1]sconfig-hash":"%[2]s"}},"spec":{"containers":[{"image":"%[4]s"}]}}}}`,
			annotation.DefaultPrefix, hash, strings.Repeat("A", 23), image)
	}
	answer := responseOf(t, post(s.handler, []byte(review(`"operation":"UPDATE","oldObject":`+object("app:1")+`,"object":`+object("app:2")))))
	assert.True(t, answer.Allowed, "a release passes where objects cannot be read")
	require.Len(t, answer.Warnings, 1)
	assert.Contains(t, answer.Warnings[0], "the namespace is not listed yet")
	assert.Equal(t, 1, decisions(t, s, "template-changed", "unread"))
	assert.Nil(t, answer.PatchType, "the Record and the hash stay")
}
