package referent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// drawn is a graph with every state.
func drawn(t *testing.T) world {
	t.Helper()
	w := tangle(t)
	w.set("clusters/c2", map[string]any{"proxyRef": named("p"), "serviceRef": named("bad")})
	w.set("services/bad", nil, with(ready(1, `No "<b>#&\`), "status"))
	w.set("clusters/lost", map[string]any{"proxyRef": named("A"), "serviceRef": named("none")})
	w.Evaluate()
	return w
}

// TestPictures compares with files; to write them again, delete them and copy what the test prints.
func TestPictures(t *testing.T) {
	t.Parallel()
	p := drawn(t).Picture()
	for file, got := range map[string]string{"graph.txt": p.Text(), "graph.dot": p.DOT(), "graph.mmd": p.Mermaid()} {
		want, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		assert.Equal(t, string(want), got, file)
	}
}

func TestPictureOfOneRoot(t *testing.T) {
	t.Parallel()
	w := drawn(t)
	assert.Equal(t, "services.example.io/s in namespace n  [ok]\n└─ secret/tls  [ok]\n", w.Picture(key("services/s")).Text())
	assert.Equal(t, "proxies.example.io/none in namespace n  [missing]\n", w.Picture(key("proxies/none")).Text())
	assert.Equal(t, "flowchart LR", strings.Split(w.Picture(key("proxies/none")).Mermaid(), "\n")[0])
}

func TestPictureOfACycleEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loose())
	w.loose("a") // a root before the cycle
	w.loose("b", "c")
	w.loose("c", "b")
	w.Evaluate()
	text := w.Picture().Text()
	assert.Contains(t, text, "a.example.io/b in namespace n  [cycle: a.example.io/b → a.example.io/c → a.example.io/b]\n")
	assert.Contains(t, text, "(see above)")
	assert.Equal(t, []referent.PictureEdge{{From: key("a/b"), To: key("a/c")}, {From: key("a/c"), To: key("a/b")}}, w.Picture().Edges)
}
