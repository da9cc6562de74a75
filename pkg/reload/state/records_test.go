package state

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRecordIsKeptOfOneVersionOfAJob(t *testing.T) {
	t.Parallel()
	key, other := workload.Key{Namespace: "shop", Name: "import"}, workload.Key{Namespace: "shop", Name: "export"}
	var s State
	s.Records.Keep(key, "u1", "old", "kept")
	for name, tc := range map[string]struct {
		records     *Records
		key         workload.Key
		uid, stored string
		want        string
	}{
		"the same Job":         {&s.Records, key, "u1", "old", "kept"},
		"another Job":          {&s.Records, other, "u1", "old", ""},
		"created again":        {&s.Records, key, "u2", "old", ""},
		"recorded since":       {&s.Records, key, "u1", "new", ""},
		"the record is gone":   {&s.Records, key, "u1", "", ""},
		"none are ever stored": {nil, key, "u1", "old", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, kept := tc.records.InPlaceOf(tc.key, tc.uid, tc.stored)
			assert.Equal(t, tc.want, text)
			assert.Equal(t, tc.want != "", kept)
		})
	}
}

func TestRecordIsForgottenWithItsJob(t *testing.T) {
	t.Parallel()
	key := workload.Key{Namespace: "shop", Name: "import"}
	var s State
	s.Records.Keep(key, "u1", "", "kept")
	s.Forget(key)
	_, kept := s.Records.InPlaceOf(key, "u1", "")
	assert.False(t, kept, "the Record is gone with the Job")
}
