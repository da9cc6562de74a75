package chain_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// A tenant has thousands of objects, large ones, and a status that changes all the time. Others notice nothing.
func TestTenantWithManyObjectsDelaysNoOther(t *testing.T) {
	t.Parallel()
	tenant, neighbour := newGraphFixture(t, shared), newGraphFixture(t, shared)
	neighbour.Secret("tls", fixture.Data{"k": "1"})
	neighbour.make("Part", "root", `{secrets: [{name: tls}]}`)
	calm := neighbour.tracks("web", theParts+"root")

	const many, wide = 2_000, 1_000
	var creating errgroup.Group
	creating.SetLimit(8)
	for i := range many {
		creating.Go(func() error {
			part := tenant.custom("Part", fmt.Sprintf("p.%d.%s", i, strings.Repeat("x", 200)))
			part.Object["spec"] = map[string]any{"size": int64(i)}
			return tenant.Create(tenant.Context(), part)
		})
	}
	for i := range 10 {
		creating.Go(func() error {
			part := tenant.custom("Part", fmt.Sprintf("huge-%d", i))
			part.Object["spec"] = map[string]any{"text": strings.Repeat(`"<>`, 100_000)}
			return tenant.Create(tenant.Context(), part)
		})
	}
	require.NoError(t, creating.Wait())
	var names []string
	for i := range wide {
		names = append(names, fmt.Sprintf("p.%d.%s", i, strings.Repeat("x", 200)))
	}
	tenant.make("Part", "hub", list(names))
	tenant.make("Part", "root", `{parts: [{name: hub}, {name: huge-1}]}`)
	busy := tenant.tracks("web", theParts+"root")
	neighbour.SetSecret("tls", "k", "2")
	neighbour.rolls(calm, "beside many objects")
	tenant.edit("Part", names[500], `{"size":-1}`)
	tenant.rolls(busy, "one of a thousand")

	tenant.edit("Part", "hub", `{"more":true}`)
	tenant.rolls(busy, "the hub")
	tenant.make("Part", "too-many", list(append(names, "one-more")))
	held := tenant.tracksHeld("held", theParts+"too-many")
	tenant.AwaitEvent(held, "ReferentHeld", "too-many: more than 1000 references")
}

// A status that flaps 20 times a second restarts nothing, and does not keep a change from being counted once.
func TestFlappingStatusRestartsNothing(t *testing.T) {
	t.Parallel()
	k := newKafka(t)
	flapping, stop := context.WithCancel(t.Context())
	defer stop()
	var flaps atomic.Int64
	var flapper errgroup.Group
	flapper.Go(func() error {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-flapping.Done():
				return nil
			case <-tick.C:
			}
			resolved := []string{"True", "False"}[flaps.Add(1)%2]
			status := fmt.Sprintf(`{"status":{"conditions":[{"type":"ResolvedRefs","status":%q}]}}`, resolved)
			filter := k.custom("KafkaProtocolFilter", "filter")
			err := k.Status().Patch(flapping, filter, client.RawPatch(types.MergePatchType, []byte(status)))
			if err != nil && flapping.Err() == nil {
				return err
			}
		}
	})
	k.stays(k.proxy, "the filter is ready or not")
	k.SetSecret("tls", "tls.crt", "2")
	k.rolls(k.proxy, "in a time when the filter is ready")
	k.Merge(k.Get(k.proxy), "proxy", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	k.rolls(k.proxy, "a release of the workload")
	k.Await("the status to have flapped often", func() error {
		if n := flaps.Load(); n <= 20 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	stop()
	require.NoError(t, flapper.Wait())
	k.report("KafkaProtocolFilter", "filter", operated)
	k.SetSecret("tls", "tls.crt", "3")
	k.rolls(k.proxy, "it still works")
}
