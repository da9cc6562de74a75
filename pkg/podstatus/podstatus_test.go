package podstatus_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
)

// status makes one with a single object. Its name is its UID.
func status(name, resourceVersion, version string, rotated bool) podstatus.Status {
	return podstatus.Status{
		Name: name, UID: name, ResourceVersion: resourceVersion, Class: "vault", Rotated: rotated, Objects: map[string]string{"password": version},
	}
}

func TestStatusThatCounts(t *testing.T) {
	t.Parallel()
	const mounted, rotated = false, true
	empty := status("empty", "90", "", rotated)
	empty.Objects = nil
	tests := map[string]struct {
		reason   string
		statuses []podstatus.Status
		want     string
	}{
		"none":               {reason: "No pod has mounted the class."},
		"one without object": {reason: "The driver has not mounted anything yet.", statuses: []podstatus.Status{empty}},
		"mounted only": {
			reason:   "The oldest pod says what was running before a new pod mounted a newer version.",
			statuses: []podstatus.Status{status("a", "9", "1", mounted), status("b", "10", "1", mounted), status("c", "100", "2", mounted)},
			want:     "a",
		},
		"one is rotated": {
			reason:   "Its pod was started with other versions.",
			statuses: []podstatus.Status{status("a", "9", "1", mounted), status("b", "30", "2", rotated), status("c", "40", "2", mounted)},
			want:     "b",
		},
		"a rotation under way": {
			reason:   "The latest rotation has the newest versions; 100 is later than 99.",
			statuses: []podstatus.Status{status("a", "99", "2", rotated), status("b", "100", "3", rotated), status("c", "20", "2", rotated)},
			want:     "b",
		},
		"an empty status is later": {
			reason:   "A status without objects has no content.",
			statuses: []podstatus.Status{empty, status("a", "9", "1", mounted)},
			want:     "a",
		},
		"versions without an order": {
			reason:   "The result is the same in any order.",
			statuses: []podstatus.Status{status("b", "x", "2", rotated), status("a", "y", "3", rotated)},
			want:     "a",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				found, ok := podstatus.Of(tc.statuses)
				assert.Equal(t, tc.want != "", ok, tc.reason)
				assert.Equal(t, tc.want, found.Name, tc.reason)
				slices.Reverse(tc.statuses)
			}
		})
	}
}

func TestStateOfClass(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "1")
	key, _ := ring.Newest()
	state, _ := podstatus.State("shop", "vault", nil, ring)
	assert.Equal(t, digest.State{Absent: true}, state, "no pod has mounted the class")

	mounted, content := podstatus.State("shop", "vault", []podstatus.Status{status("a", "9", "1", false)}, ring)
	assert.True(t, mounted.Mounted, "the pod has started with this content")
	assert.Equal(t, "9", mounted.ResourceVersion)
	assert.Equal(t, "a", mounted.UID)
	assert.Equal(t, content.Entry(key), mounted.Entries[key.ID])

	same, _ := podstatus.State("shop", "vault", []podstatus.Status{status("b", "10", "1", true)}, ring)
	assert.False(t, same.Mounted, "the driver has rotated the content since")
	assert.Equal(t, mounted.Entries, same.Entries, "the same versions are the same content, whichever pod has them")
	other, _ := podstatus.State("shop", "vault", []podstatus.Status{status("b", "10", "2", true)}, ring)
	assert.NotEqual(t, mounted.Entries, other.Entries)
	elsewhere, _ := podstatus.State("pay", "vault", []podstatus.Status{status("b", "10", "1", true)}, ring)
	assert.NotEqual(t, mounted.Entries, elsewhere.Entries, "a class belongs to its namespace")
}
