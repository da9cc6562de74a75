package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestBackoffIsEachWorkloadsOwn(t *testing.T) {
	t.Parallel()
	b := NewBackoff()
	poisoned, healthy := workload.Key{Name: "poisoned"}, workload.Key{Name: "healthy"}
	for range 20 {
		b.rarely.When(poisoned)
		b.soon.When(poisoned)
	}
	assert.Equal(t, longestSoon, b.soon.When(poisoned), "what may pass is tried again within seconds")
	assert.Equal(t, longestRarely, b.rarely.When(poisoned))
	assert.Equal(t, firstSoon, b.soon.When(healthy))
	assert.Equal(t, firstRarely, b.rarely.When(healthy))
	b.Forget(poisoned)
	assert.Equal(t, firstRarely, b.rarely.When(poisoned), "a success starts its pace anew")
}

func TestOnlyConflictsMakeARequestInsist(t *testing.T) {
	t.Parallel()
	b, key := NewBackoff(), workload.Key{Name: "web"}
	for range 20 {
		b.When(key, Soon)
		b.When(key, Rarely)
	}
	assert.False(t, b.Insists(key, Impatient), "an API server that is away is no constant change")
	for range int(Impatient) {
		assert.False(t, b.Insists(key, Impatient))
		b.When(key, Conflict)
	}
	assert.True(t, b.Insists(key, Impatient))
	waited := time.Duration(0)
	for !b.Insists(key, Patient) {
		waited += b.When(key, Conflict)
		assert.Equal(t, waited > 2*time.Second, b.Insists(key, Alert))
	}
	assert.InDelta(t, 15, waited.Seconds(), 5, "another replica may need 10 s to read its configuration")
	assert.False(t, b.Insists(workload.Key{Name: "other"}, Impatient))
	b.Forget(key)
	assert.False(t, b.Insists(key, Impatient), "the next change is asked for with its digest again")
}
