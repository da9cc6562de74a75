package pattern_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/pattern"
)

func TestCacheSharesPatterns(t *testing.T) {
	t.Parallel()
	var c pattern.Cache
	first, err := c.Compile("app-.*")
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again, err := c.Compile("app-.*")
			assert.NoError(t, err)
			assert.Same(t, first, again)
		})
	}
	all.Wait()
	_, err = c.Compile("app-(")
	require.Error(t, err)
	other, err := c.Compile("app-.+")
	require.NoError(t, err)
	assert.Equal(t, "app-.+", other.String())
}

func TestCacheKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	var c pattern.Cache
	first, err := c.Compile("app-.*")
	require.NoError(t, err)
	unused, err := c.Compile("unused-.*")
	require.NoError(t, err)
	for i := range 300 {
		_, err := c.Compile(fmt.Sprintf("x%d[a-z]{500}", i))
		require.NoError(t, err)
		again, err := c.Compile("app-.*")
		require.NoError(t, err)
		require.Same(t, first, again, "what is asked for stays, whatever passes through")
	}
	again, err := c.Compile("unused-.*")
	require.NoError(t, err)
	assert.NotSame(t, unused, again, "what is not asked for goes: the cache is bounded")
}

func TestNilCacheCompiles(t *testing.T) {
	t.Parallel()
	var c *pattern.Cache
	p, err := c.Compile("a.*")
	require.NoError(t, err)
	assert.True(t, p.Match("ab"), "a compiled expression matches")
}

func BenchmarkCompile(b *testing.B) {
	var c pattern.Cache
	for name, compile := range map[string]func(string) (*pattern.Pattern, error){"cached": c.Compile, "uncached": pattern.Compile} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compile("app-[0-9]+-" + strings.Repeat("x", 8)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
