package inflight

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSlotsThatANamespaceMayUse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		earned, overdue, inAll int
		want                   int
	}{
		"nothing is overdue":                        {earned: 4, want: 4},
		"nothing of it is overdue":                  {earned: 4, inAll: 128, want: 4},
		"one is overdue":                            {earned: 1, overdue: 1, inAll: 1, want: 2},
		"one is overdue, whatever it had earned":    {earned: 8, overdue: 1, inAll: 1, want: 2},
		"all that a namespace may have are overdue": {earned: 1, overdue: 8, inAll: 8, want: 8},
		"the last spare slot":                       {earned: 1, overdue: 1, inAll: 31, want: 2},
		"no slot is spare":                          {earned: 1, overdue: 1, inAll: 32, want: 1},
		"no slot is spare, and it has several":      {earned: 1, overdue: 5, inAll: 100, want: 5},
	} {
		assert.Equal(t, tc.want, Options{}.withDefaults().mayUse(tc.earned, tc.overdue, tc.inAll), name)
	}
}
