package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

func TestRunOfAllScenariosHasABudget(t *testing.T) {
	t.Parallel()
	assert.Equal(t, figure.OK, whole(longest).Judge(false))
	assert.Equal(t, figure.Over, whole(longest+time.Second).Judge(false))
	assert.Equal(t, figure.Unjudged, whole(time.Hour).Judge(true), "a smoke test measures no time")
}
