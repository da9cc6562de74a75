package act

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// size returns that of all annotations but the managed ones.
func size(annotations world.Object) int {
	total := 0
	for key, value := range annotations {
		if !isManaged(key) {
			total += len(key) + len(value.(string))
		}
	}
	return total
}

func TestAnnotationsAreFilledForAWhile(t *testing.T) {
	t.Parallel()
	for where, of := range map[string]func(world.Object) world.Object{
		"workload": world.Annotations,
		"template": func(o world.Object) world.Object { return world.Annotations(world.Section(o, "spec", "template")) },
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRecorder(t)
				annotations := of(f.get(cart))
				annotations[Prefix+"config-hash"] = strings.Repeat("h", 64)
				before := size(annotations)
				done := make(chan error)
				go func() { done <- f.do("fill-annotations", cart, "where", where, "left", "60", "for", "5s") }()
				time.Sleep(time.Second) //nolint:forbidigo // the time is fake
				synctest.Wait()
				assert.Equal(t, annotationLimit-60, size(of(f.get(cart))), "the program's own are not counted")
				require.NoError(t, <-done)
				assert.Equal(t, before, size(of(f.get(cart))))
				require.ErrorIs(t, f.do("fill-annotations", cart, "where", where, "left", "262144", "for", "5s"), ErrSkipped)
			})
		})
	}
}

func TestLongListsKeepTheirNames(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("long-lists", cart, "n", "30000"))
	list, _ := world.Annotations(f.get(cart))[listOfConfigMaps].(string)
	names := world.Items(list)
	assert.Len(t, names, 30_000)
	assert.Equal(t, []string{"app", "extra", "g00002"}, names[:3])
	assert.Less(t, len(list), annotationLimit)
}
