package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// releaseOf is a release of a Deployment that tracks configmap/app. Its config-hash, and its Record if it has one, are under a key.
func releaseOf(id digest.KeyID, recorded bool, image string) []byte {
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	hash := digest.HashRecorded(id, map[reference.Ref]string{app: "0123456789abcdef"})
	annotations := fmt.Sprintf(`%q:"app"`, annotation.DefaultPrefix+"configmaps")
	if recorded {
		text := record.New(hash, id, map[reference.Ref]record.Item{app: {Entry: "0123456789abcdef", Hint: "9"}}).String()
		annotations += fmt.Sprintf(`,%q:%q`, annotation.DefaultPrefix+"config-record", text)
	}
	object := func(image string) string {
		return fmt.Sprintf(`{"metadata":{"generation":3,"resourceVersion":"100","annotations":{%s}},`+
			`"spec":{"template":{"metadata":{"annotations":{%q:%q}},"spec":{"containers":[{"image":%q}]}}}}`,
			annotations, annotation.DefaultPrefix+"config-hash", hash, image)
	}
	return []byte(review(`"operation":"UPDATE","oldObject":` + object("app:1") + `,"object":` + object(image)))
}

// A change is due, and the release brings it to the pods: otherwise the loop would reload them once more.
func TestReleaseIsStampedThoughTheRingInMemoryIsOld(t *testing.T) {
	t.Parallel()
	stored := digesttest.Ring(t, "\x07\x08")
	newest, _ := stored.Newest()
	for name, recorded := range map[string]bool{"by the Record": true, "by the hash": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.keys = stored
			s := newHandler(t, w, nil, logr.Discard())
			answer := responseOf(t, post(s.handler, releaseOf(newest.ID, recorded, "app:2")))
			assert.Equal(t, 1, decisions(t, s, "template-changed", "stamped"))
			assert.Contains(t, string(answer.Patch), "last-reload")
			responseOf(t, post(s.handler, releaseOf(newest.ID, recorded, "app:2")))
			assert.EqualValues(t, 1, w.refreshes.Load(), "the key is known now")
		})
	}
}

// What is under a lost key is adopted where new pods start with it. A Record is left to the loop, and so is a hash while it is not known that
// its key is lost.
func TestReleaseUnderAKeyThatIsNotThere(t *testing.T) {
	t.Parallel()
	lost, _ := digesttest.Ring(t, "\x09").Newest()
	for name, tc := range map[string]struct {
		reason   string
		recorded bool
		image    string
		refresh  func(ctx context.Context) (time.Time, error)
		outcome  string
		took     time.Duration
		rule     string
	}{
		"hash under a lost key":   {reason: "The new pods start with what is adopted.", outcome: "patched"},
		"Record under a lost key": {reason: "Two installations must not fight.", recorded: true, outcome: "unchanged"},
		"no release": {
			reason: "The loop reports that a change may be missed.", image: "app:1", outcome: "unchanged", rule: "adopt",
		},
		"keys read before": {
			reason: "The key may be newer than the read.", outcome: "unchanged",
			refresh: func(context.Context) (time.Time, error) { return now.Add(-1), nil },
		},
		"keys that cannot be read": {
			reason: "The key may be in the Secret.", outcome: "unchanged",
			refresh: func(context.Context) (time.Time, error) { return now, errors.New("away") },
		},
		"keys that are read slowly": {
			reason: "The configuration must be read in time, too.", outcome: "unchanged", took: time.Second,
			refresh: func(ctx context.Context) (time.Time, error) {
				<-ctx.Done()
				return time.Time{}, ctx.Err()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.refresh = tc.refresh
				s := newHandler(t, w, func(o *webhook.Options) { o.Deadline = 4 * time.Second }, logr.Discard())
				began := time.Now()
				responseOf(t, post(s.handler, releaseOf(lost.ID, tc.recorded, orElse(tc.image, "app:2"))))
				assert.Equal(t, 1, decisions(t, s, orElse(tc.rule, "template-changed"), tc.outcome), tc.reason)
				assert.EqualValues(t, 1, w.refreshes.Load())
				assert.EqualValues(t, 1, w.reads.Load())
				assert.Equal(t, tc.took, time.Since(began))
			})
		})
	}
}

// Most writes need no read of the keys.
func TestKeysAreReadForAnUnknownKeyOnly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"create-restored", "release", "release-only", "scale", "dummy-match", "dummy-mismatch", "put-without-our-annotations"} {
		w := newWorld(t)
		responseOf(t, post(newHandler(t, w, nil, logr.Discard()).handler, fixture(t, name+"/request.yaml")))
		assert.Zero(t, w.refreshes.Load(), name)
	}
}
