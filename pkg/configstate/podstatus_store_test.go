package configstate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Whatever comes and goes, the status that is kept as the one that counts is the one that all of them give.
func TestStatusThatCountsIsThatOfAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	x := newPodStatuses()
	for step := range 5_000 {
		namespace := fmt.Sprint("ns-", random.IntN(2))
		s := podstatus.Status{
			Name: fmt.Sprint("web-", random.IntN(8)), UID: fmt.Sprint("uid-", step), ResourceVersion: strconv.Itoa(step + 1),
			Class: fmt.Sprint("class-", random.IntN(2)), Rotated: random.IntN(3) == 0,
		}
		if random.IntN(8) > 0 {
			s.Objects = map[string]string{"id": s.ResourceVersion}
		}
		switch random.IntN(20) {
		case 0:
			listed := newPodStatuses()
			listed.put(namespace, s)
			x.replace(namespace, listed)
		case 1, 2, 3, 4, 5, 6:
			x.remove(namespace, s.Name)
		default:
			x.put(namespace, s)
		}
		for _, k := range []objectKey{classOf("ns-0", "class-0"), classOf("ns-0", "class-1"), classOf("ns-1", "class-0"), classOf("ns-1", "class-1")} {
			want, _ := podstatus.Of(slices.Collect(maps.Values(x.byClass[k])))
			require.Equal(t, want, x.counting[k], "step %d", step)
		}
	}
}

func TestResourceOfAWatch(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "secretproviderclasspodstatuses", resourceOf(podStatusKind))
	assert.Equal(t, "configmaps", resourceOf(reference.ConfigMap))
}
