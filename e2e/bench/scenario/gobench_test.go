package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseBench(t *testing.T) {
	t.Parallel()
	found := parseBench(`goos: linux
pkg: example.com/p
BenchmarkDebouncer-2             	51412186	        20.82 ns/op	  48024047 events/s	       0 B/op	       0 allocs/op
BenchmarkDebouncer-2             	51412186	        30.00 ns/op	  38024047 events/s	       0 B/op	       0 allocs/op
BenchmarkGet/first-of-two        	   10000	       109 ns/op
--- BENCH: BenchmarkGet
PASS
ok  	example.com/p	1.2s
`)
	assert.Equal(t, measurements{
		"Debouncer": {
			"ns/op": {20.82, 30}, "events/s": {48024047, 38024047}, "B/op": {0, 0}, "allocs/op": {0, 0},
		},
		"Get/first-of-two": {"ns/op": {109}},
	}, found)
	assert.InDelta(t, 20.82, found.median("Debouncer", "ns/op"), 0, "of two the lower one")
	require.NoError(t, found.require("Debouncer", "Get/first-of-two"))
	require.EqualError(t, found.require("Get", "Debouncer"), "go test ran no benchmark Get, but Debouncer, Get/first-of-two")
}
