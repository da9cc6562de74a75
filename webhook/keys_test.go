package webhook_test

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
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

// Most writes need no read of the keys.
func TestKeysAreReadForAnUnknownKeyOnly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"create-restored", "release", "release-only", "scale", "dummy-match", "dummy-mismatch", "put-without-our-annotations"} {
		w := newWorld(t)
		responseOf(t, post(newHandler(t, w, nil, logr.Discard()).handler, fixture(t, name+"/request.yaml")))
		assert.Zero(t, w.refreshes.Load(), name)
	}
}
