package state

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestNoticesAreThoseOfTheRecordThatIsStored(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	created, deleted := []policy.Change{{Type: policy.Created}}, []policy.Change{{Type: policy.Deleted}}
	n := &notices{}
	assert.Empty(t, n.Stored(key, "1", "a"))
	n.Unanswered(key, "1", "a", created)
	n.Unanswered(key, "1", "b", deleted)
	assert.Empty(t, n.Stored(key, "1", "a"), "the version of before says nothing")
	assert.Equal(t, created, n.Stored(key, "2", "a"))
	assert.Empty(t, n.Stored(key, "2", "a"), "once")

	n.Unanswered(key, "2", "a", created)
	assert.Empty(t, n.Stored(key, "3", "c"), "neither was stored")
	assert.Empty(t, n.Stored(key, "4", "a"), "and cannot be any more")

	n.Unanswered(key, "4", "a", created)
	n.Unanswered(key, "5", "b", deleted)
	assert.Empty(t, n.Stored(key, "6", "a"), "the write of an earlier version was not stored")
}

func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	changes := []policy.Change{{Type: policy.Created}}
	for stored, want := range map[string][]policy.Change{"0": nil, "99": changes} {
		n := &notices{}
		for i := range 100 {
			n.Unanswered(key, "1", strconv.Itoa(i), changes)
		}
		assert.Len(t, n.entries[key].writes, unansweredKept)
		assert.Equal(t, want, n.Stored(key, "2", stored), "the last write is the likeliest to be stored: %s", stored)
	}
}
