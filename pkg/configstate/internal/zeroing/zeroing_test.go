package zeroing_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/zeroing"
)

// child is set in the process that TestNothingRemains looks into.
const child = "QUIET_TEST_CHILD"

func TestMain(m *testing.M) {
	if url := os.Getenv(child); url != "" {
		if err := read(url); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// remembered is what the child is known to have in memory: the search must find it.
var remembered []byte

// read is the child: it reads a large and a small response, waits for more of an endless one, and dumps its heap when
// all connections are at rest.
func read(url string) error {
	ca, err := base64.StdEncoding.DecodeString(os.Getenv("QUIET_TEST_CA"))
	if err != nil {
		return err
	}
	conns := &conns{}
	client, err := zeroing.NewHTTPClient(&rest.Config{
		Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, Dial: conns.dial,
	})
	if err != nil {
		return err
	}
	endless, err := receive(client, url+"/endless", nil)
	if err != nil {
		return err
	}
	go func() { _, _ = endless.Read(make([]byte, 1)) }() // as the watcher of a watch
	for _, path := range []string{"/large", "/small", "/remembered"} {
		body, err := receive(client, url+path, &remembered)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
		_ = body.Close()
	}
	conns.rest()
	runtime.GC()
	dump, err := os.Create(os.Getenv("QUIET_TEST_DUMP"))
	if err != nil {
		return err
	}
	debug.WriteHeapDump(dump.Fd())
	runtime.KeepAlive(endless)
	runtime.KeepAlive(client)
	return dump.Close()
}

// receive reads as much as the server has said it sends at first, and forgets it unless it is to be remembered.
func receive(client *http.Client, url string, memory *[]byte) (io.ReadCloser, error) {
	response, err := client.Get(url) //nolint:noctx // the test ends the process
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(response.Header.Get("Size"))
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, size)
	if _, err := io.ReadFull(response.Body, buffer); err != nil {
		return nil, err
	}
	if strings.HasSuffix(url, "/remembered") {
		*memory = bytes.Clone(buffer)
	}
	clear(buffer)
	return response.Body, nil
}

// conns knows which connections wait for bytes.
type conns struct {
	open, waiting atomic.Int32
}

func (c *conns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	c.open.Add(1)
	return &watched{conn, c}, err
}

// rest waits until all connections wait.
func (c *conns) rest() {
	for c.waiting.Load() < c.open.Load() {
		<-time.After(time.Millisecond)
	}
}

type watched struct {
	net.Conn

	conns *conns
}

func (w *watched) Read(p []byte) (int, error) {
	w.conns.waiting.Add(1)
	defer w.conns.waiting.Add(-1)
	return w.Conn.Read(p)
}

func TestNothingRemains(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"/large":      strings.Repeat("planted-large ", 5000),
		"/small":      strings.Repeat("planted-small ", 20),
		"/endless":    strings.Repeat("planted-endless ", 2000),
		"/remembered": "planted-remembered ",
	}
	done := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 1, r.ProtoMajor)
		body := bodies[r.URL.Path]
		w.Header().Set("Size", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
		if r.URL.Path == "/endless" {
			_ = http.NewResponseController(w).Flush()
			<-done
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(done) })

	ca := "-----BEGIN CERTIFICATE-----\n" + base64.StdEncoding.EncodeToString(server.Certificate().Raw) +
		"\n-----END CERTIFICATE-----\n"
	dump := filepath.Join(t.TempDir(), "heap")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), child+"="+server.URL, "QUIET_TEST_DUMP="+dump,
		"QUIET_TEST_CA="+base64.StdEncoding.EncodeToString([]byte(ca)))
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))

	heap, err := os.ReadFile(dump)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(heap, []byte("planted-remembered")), "the search finds what is there")
	for _, planted := range []string{"planted-large", "planted-small", "planted-endless"} {
		assert.Zero(t, bytes.Count(heap, []byte(planted)), "%s is still in memory", planted)
	}
}
