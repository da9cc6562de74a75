package digest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

func TestStatesAreComparedByVersionAndThoseOfCustomResourcesByContent(t *testing.T) {
	t.Parallel()
	entries := func(e byte) map[digest.KeyID]digest.Entry { return map[digest.KeyID]digest.Entry{"k": {e}} }
	seen := digest.State{UID: "u", ResourceVersion: "1", Entries: entries(1)}
	custom := digest.State{Entries: entries(1)}
	for name, tc := range map[string]struct {
		one, other digest.State
		same       bool
	}{
		"one version, unread":   {seen, digest.State{UID: "u", ResourceVersion: "1"}, true},
		"another version":       {seen, digest.State{UID: "u", ResourceVersion: "2", Entries: entries(1)}, false},
		"another object":        {seen, digest.State{UID: "v", ResourceVersion: "1", Entries: entries(1)}, false},
		"no object":             {digest.State{Absent: true}, digest.State{Absent: true}, true},
		"an object and none":    {seen, digest.State{Absent: true}, false},
		"one content":           {custom, digest.State{Entries: entries(1)}, true},
		"another content":       {custom, digest.State{Entries: entries(2)}, false},
		"a content and a hold":  {custom, digest.State{Hold: &digest.Hold{}}, false},
		"a hold and no object":  {digest.State{Hold: &digest.Hold{}}, digest.State{Absent: true}, false},
		"the reasons of a hold": {digest.State{Hold: &digest.Hold{Reason: "a"}}, digest.State{Hold: &digest.Hold{Reason: "b"}}, true},
	} {
		assert.Equal(t, tc.same, tc.one.SameVersion(tc.other), name)
		assert.Equal(t, tc.same, tc.other.SameVersion(tc.one), name)
	}
}
