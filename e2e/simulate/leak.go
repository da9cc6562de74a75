package simulate

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// upstreamLeaks are functions of libraries in which a goroutine may wait for ever.
func upstreamLeaks() []string {
	return []string{
		// It sends without looking whether its consumer has stopped. controller-runtime watches metadata through it.
		"k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop",
	}
}

// inBubble calls f in a bubble of fake time, and returns the stacks of the goroutines that f leaves behind, but for those that
// libraries leave behind. testing/synctest panics where there are any.
func inBubble(t *testing.T, f func(t *testing.T)) (left []string) {
	t.Helper()
	defer func() {
		failure := recover()
		if failure == nil {
			return
		}
		if !strings.Contains(fmt.Sprint(failure), "blocked goroutines remain") {
			panic(failure)
		}
		left = leaked(stacks())
	}()
	synctest.Test(t, f)
	return nil
}

// reconcilePanics returns how many reconciliations have panicked in this process: controller-runtime recovers and counts them for all
// replicas and histories together.
func reconcilePanics() (sum float64) {
	families, _ := metrics.Registry.Gather() // what fails concerns other families
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_panics_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return string(text[:n])
		}
	}
}

// leaked returns the stacks of the youngest bubble, but for those that wait in upstreamLeaks.
func leaked(all string) []string {
	bubble := regexp.MustCompile(`^goroutine .*synctest bubble (\d+)`)
	var youngest string
	var left []string
	for stack := range strings.SplitSeq(all, "\n\n") {
		match := bubble.FindStringSubmatch(stack)
		if match == nil {
			continue
		}
		if id := match[1]; id != youngest {
			if len(id) < len(youngest) || len(id) == len(youngest) && id < youngest {
				continue
			}
			youngest, left = id, nil
		}
		if !isUpstream(stack) {
			left = append(left, stack)
		}
	}
	return left
}

func isUpstream(stack string) bool {
	for _, function := range upstreamLeaks() {
		if strings.Contains(stack, function) {
			return true
		}
	}
	return false
}
