package webhook_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// unlisted are objects of which only those that were read are known: their kind may not be listed.
type unlisted struct{ annotation.Listed }

func (u unlisted) Traits(ref reference.Ref) (annotation.Traits, bool) {
	if traits, read := u.Listed[ref]; read {
		return traits, true
	}
	return annotation.Traits{Unseen: true}, false
}

func TestWriteIsDecidedWithAnnotationsThatMayNotBeListed(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	for name, tc := range map[string]struct {
		reason   string
		name     string
		traits   annotation.Traits
		err      error
		recorded bool
		reads    int
	}{
		"ignored object":     {reason: "It is not tracked.", name: "app", traits: annotation.Traits{Ignored: true}, reads: 1},
		"object that counts": {reason: "Each object is read once.", name: "app", recorded: true, reads: 1},
		"annotations that cannot be read": {
			reason: "The write is decided without, as before.", name: "app", err: errors.New("refused"), recorded: true, reads: 2,
		},
		"object that is not there": {reason: "It has no annotations.", name: "none", recorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, known, reads := newWorld(t), annotation.Listed{}, 0
			w.learn = func(refs []reference.Ref) error {
				assert.Equal(t, []reference.Ref{app}, refs)
				reads++
				if tc.err == nil {
					known[app] = tc.traits
				}
				return tc.err
			}
			s := newHandler(t, w, func(o *webhook.Options) {
				o.Reader.Dialects = append(o.Reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
				o.Reader.Objects = func(string) (annotation.Objects, error) { return unlisted{known}, nil }
			}, logr.Discard())
			for range 2 {
				answer := responseOf(t, post(s.handler, []byte(review(fmt.Sprintf(`"operation":"CREATE","object":{"metadata":{"annotations":`+
					`{"configmap.reloader.stakater.com/reload":%q}},"spec":{"template":{}}}`, tc.name)))))
				assert.True(t, answer.Allowed, "a write passes, whether or not the object is listed")
				if tc.recorded {
					assert.Contains(t, string(answer.Patch), "configmap/"+tc.name+"=", tc.reason)
				} else {
					assert.Empty(t, answer.Patch, tc.reason)
				}
			}
			assert.Equal(t, tc.reads, reads, tc.reason)
			contents := int64(2)
			if !tc.recorded {
				contents = 1 // then nothing is tracked
			}
			assert.Equal(t, contents, w.reads.Load(), "once for a write")
		})
	}
}

// unseenReview is a creation that tracks a ConfigMap and a Secret that may not be listed.
const unseenReview = `"operation":"CREATE","object":{"metadata":{"annotations":{"configmap.reloader.stakater.com/reload":"app",` +
	`"secret.reloader.stakater.com/reload":"db"}},"spec":{"template":{}}}`

func newUnseenHandler(t *testing.T, w *world, log logr.Logger) setup {
	t.Helper()
	return newHandler(t, w, func(o *webhook.Options) {
		o.Reader.Dialects = append(o.Reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		o.Reader.Objects = func(string) (annotation.Objects, error) { return unlisted{}, nil }
	}, log)
}

func TestAnnotationsAreNotReadForAWriteWhoseContentsCannotBeRead(t *testing.T) {
	t.Parallel()
	w, learned := newWorld(t), 0
	w.failOne = reference.Ref{Kind: reference.Secret, Name: "db"}
	w.learn = func([]reference.Ref) error {
		learned++
		return nil
	}
	s := newUnseenHandler(t, w, logr.Discard())
	assert.True(t, responseOf(t, post(s.handler, []byte(review(unseenReview)))).Allowed, "a write passes where contents cannot be read")
	assert.Equal(t, 1, decisions(t, s, "create", "unread"))
	assert.Zero(t, learned, "the write passes without a stamp")
}

func TestFailedReadOfAnnotationsIsReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		panics int
		line   string
	}{
		"panic":   {err: recovering.Func(func() error { panic("boom") })(), panics: 1, line: "unseen_test.go"},
		"refused": {err: errors.New("refused"), line: `"error"="refused"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			w := newWorld(t)
			w.learn = func([]reference.Ref) error { return tc.err }
			s := newUnseenHandler(t, w, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1}))
			answer := responseOf(t, post(s.handler, []byte(review(unseenReview))))
			assert.Contains(t, string(answer.Patch), "configmap/app=", "the write is decided without")
			require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(fmt.Sprintf(`
# HELP pod_reloader_webhook_panics_total Admission requests whose decision, or read of ConfigMaps and Secrets, panicked; report each as a defect.
# TYPE pod_reloader_webhook_panics_total counter
pod_reloader_webhook_panics_total %d
`, tc.panics)), "pod_reloader_webhook_panics_total"))
			assert.Contains(t, strings.Join(lines, "\n"), tc.line)
		})
	}
}

// An object that may not be listed makes the webhook choose a second time, from what it has parsed once.
func TestProblemFromBeforeIsNotReportedWhereTheWriteIsChosenTwice(t *testing.T) {
	t.Parallel()
	w, learned := newWorld(t), 0
	w.learn = func([]reference.Ref) error {
		learned++
		return nil
	}
	s := newUnseenHandler(t, w, logr.Discard())
	version := func(image string) string {
		return `{"metadata":{"annotations":{"configmap.reloader.stakater.com/reload":"app","pod-reloader.cs.sap.com/configmaps":"UPPER"}},` +
			`"spec":{"template":{"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}`
	}
	answer := responseOf(t, post(s.handler, []byte(review(`"operation":"UPDATE","oldObject":`+version("1")+`,"object":`+version("2")))))
	assert.Equal(t, 1, learned)
	assert.Empty(t, answer.Warnings, "the write that brought it has reported it")
}
