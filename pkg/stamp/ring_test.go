package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestKeysAreNeededForWhatIsCompared(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "12")
	ours := ring.Keys()[0].ID
	other := digesttest.Ring(t, "3").Keys()[0].ID
	hash := func(id digest.KeyID) string {
		return digest.HashRecorded(id, map[reference.Ref]string{cm("a"): "0123456789abcdef"})
	}
	recordBeside := func(hash string, id digest.KeyID) string {
		return record.New(hash, id, map[reference.Ref]record.Item{cm("a"): {Entry: "0123456789abcdef"}}).String()
	}
	stamped := func(id digest.KeyID) Managed {
		return Managed{Hash: hash(id), Record: recordBeside(hash(id), id)}
	}
	for name, tc := range map[string]struct {
		reason   string
		old, now Managed
		create   bool
		want     bool
	}{
		"nothing":             {reason: "Nothing is compared.", old: Managed{}, now: Managed{}},
		"older key":           {reason: "The ring has it.", old: stamped(ours), now: stamped(ours)},
		"other key":           {reason: "The ring may be old.", old: stamped(other), now: stamped(other), want: true},
		"other key before":    {reason: "A PUT without annotations of ours leaves the old ones.", old: stamped(other), now: Managed{}, want: true},
		"other key now":       {reason: "An undo or the loop brings it.", old: stamped(ours), now: stamped(other), want: true},
		"hash alone":          {reason: "It is compared.", old: Managed{Hash: hash(other)}, now: Managed{Hash: hash(other)}, want: true},
		"hash beside Record":  {reason: "The new hash is compared alone.", old: stamped(ours), now: Managed{Hash: hash(other), Record: stamped(ours)[Record]}, want: true},
		"revision digest":     {reason: "The Record is compared.", old: Managed{Hash: hash(other), Record: recordBeside(hash(other), ours)}, now: Managed{Hash: hash(other), Record: recordBeside(hash(other), ours)}},
		"Record of another":   {reason: "It belongs to no hash here.", old: Managed{Record: stamped(other)[Record]}, now: Managed{}},
		"no hash of ours":     {reason: "It has no key.", old: Managed{Hash: "abc"}, now: Managed{Hash: "abc"}},
		"request for now":     {reason: "The loop has a newer ring.", old: stamped(ours), now: Managed{Hash: hash(ours), Record: stamped(ours)[Record], Dummy: hash(other) + "@3"}, want: true},
		"request for earlier": {reason: "It is purged.", old: stamped(ours), now: Managed{Hash: hash(ours), Record: stamped(ours)[Record], Dummy: hash(other) + "@2"}},
		"request of a client": {reason: "It may have a revision digest.", old: stamped(ours), now: Managed{Hash: hash(ours), Record: stamped(ours)[Record], Dummy: hash(other)}},
		"creation":            {reason: "What was copied counts for nothing.", now: stamped(other), create: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write := Write{Create: tc.create, Old: View{Managed: tc.old, Generation: 3}, New: View{Managed: tc.now, Generation: 3}}
			assert.Equal(t, tc.want, write.NeedsKey(ring), tc.reason)
		})
	}
}

// The pods of a release start with what is read for it. Without a release, or where the key may be in the Secret, the loop decides.
func TestHashUnderALostKeyIsAdoptedBesideNewPods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ringRead, release bool
		adopted           bool
	}{
		"release":                      {ringRead: true, release: true, adopted: true},
		"release, and the ring is old": {release: true},
		"no release":                   {ringRead: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			view := w.view()
			view.Managed = Managed{Hash: "00000000" + view.Managed[Hash][8:]}
			req := Write{Old: view, New: view, TemplateChanged: tc.release}
			inputs := w.inputs(view.Intent.Refs())
			inputs.RingRead = tc.ringRead
			result := Choose(req).Apply(req, inputs)
			_, adopted := result.Managed[Record]
			assert.Equal(t, tc.adopted, adopted)
			assert.Equal(t, view.Managed[Hash], result.Managed[Hash])
		})
	}
}
