package action

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
)

// The reason is logged where it is news, and not while the process ends.
func TestListOfRecreationsThatFailsIsLoggedOncePerReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reasons []string
		ends    bool
		want    int
	}{
		"one reason":       {reasons: []string{"away", "away", "away"}, want: 1},
		"two reasons":      {reasons: []string{"away", "slow", "slow"}, want: 2},
		"the process ends": {reasons: []string{"away"}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newJobFixture(t, nil, nil)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				j.API.Before = func(call string) error {
					if call != "list" || len(tc.reasons) == 0 {
						return nil
					}
					err := errors.New(tc.reasons[0])
					tc.reasons = tc.reasons[1:]
					if tc.ends {
						stop()
					}
					return err
				}
				logged, actions := 0, j.unlistedLeader()
				actions.resumption.log = funcr.New(func(string, string) { logged++ }, funcr.Options{})
				actions.ResumeRecreations(ctx)
				assert.Equal(t, tc.want, logged)
			})
		})
	}
}
