package subject_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/bench/subject"
)

func TestServe(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		orders  string
		failure error
		answers string
	}{
		"an order each, then the end":                  {orders: "fill\nrest\n", answers: "ready\n7\nrested\n"},
		"a first order without a second":               {orders: "fill\n", answers: "ready\n7\n"},
		"without an order nothing is done":             {answers: "ready\n"},
		"a cache that cannot be filled has no objects": {orders: "fill\nrest\n", failure: errors.New("no server"), answers: "ready\n"},
	} {
		t.Run(reason, func(t *testing.T) { // one after the other: a process takes one profile at a time
			profile := filepath.Join(t.TempDir(), "cpu.pprof")
			for _, s := range []subject.Subject{{}, {Profile: profile}} {
				s.Fill = func(context.Context) (any, int, error) { return "cache", 7, test.failure }
				var answers strings.Builder
				err := s.Serve(t.Context(), strings.NewReader(test.orders), &answers)
				assert.Equal(t, test.answers, answers.String())
				require.ErrorIs(t, err, test.failure)
			}
		})
	}
}
