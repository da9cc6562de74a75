package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/client-go/rest"
)

// proxyFault is what a proxy does to lists and watches.
type proxyFault int

const (
	noFault proxyFault = iota
	// silentWatches leaves watches without an answer.
	silentWatches
	// stoppedLists leaves lists without an answer, or behind the first item of it, by turns. It refuses watches, so that clients list.
	stoppedLists
	// shortLists ends lists, streaming ones too, behind the first item. Other watches have expired, so that clients list.
	shortLists
	// refused answers lists and watches with 500.
	refused
)

// faultyProxy relays requests to the API server, but for lists and watches that meet its fault.
type faultyProxy struct {
	relay *httputil.ReverseProxy

	mutex sync.Mutex
	fault proxyFault
	path  string // the end of the paths that meet the fault
	lists int    // how many have met the fault
	open  []openWatch
}

// openWatch is a watch that a later fault can end.
type openWatch struct {
	path string
	end  context.CancelFunc
}

// serve relays requests with the credentials of a configuration until the test ends, and makes the configuration one of the proxy.
func (p *faultyProxy) serve(t *testing.T, config *rest.Config) {
	t.Helper()
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	p.relay = httputil.NewSingleHostReverseProxy(target)
	p.relay.FlushInterval = -1 // each event of a watch at once
	p.relay.ModifyResponse = shorten
	p.relay.Transport, err = rest.TransportFor(rest.CopyConfig(config))
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: p}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	config.Host = "http://" + listener.Addr().String()
}

// begin begins a fault of the lists and watches whose path has a suffix, and ends these watches.
func (p *faultyProxy) begin(fault proxyFault, suffix string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.fault, p.path, p.lists = fault, suffix, 0
	for _, watch := range p.open {
		if strings.HasSuffix(watch.path, suffix) {
			watch.end()
		}
	}
}

// end ends the fault. What has no answer yet never gets one.
func (p *faultyProxy) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.fault = noFault
}

// met is how many lists have met the fault.
func (p *faultyProxy) met() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.lists
}

// fate is what becomes of a request.
type fate int

const (
	relayed fate = iota
	unanswered
	failed
	expired
	// short is an answer that ends behind the first item or event. Its length fits.
	short
	// chunked is short without a length.
	chunked
	// stopped is short without an end: nothing follows.
	stopped
)

// ofWatch is the fate of watches, and of those that are streaming lists.
func (f proxyFault) ofWatch(streams bool) fate {
	switch {
	case f == silentWatches:
		return unanswered
	case f == stoppedLists, f == refused:
		return failed
	case f == shortLists && streams:
		return short
	case f == shortLists:
		return expired
	default:
		return relayed
	}
}

// ofList is the fate of lists, by turns.
func (f proxyFault) ofList(turn int) fate {
	switch f {
	case stoppedLists:
		return []fate{unanswered, stopped}[turn%2]
	case shortLists:
		return []fate{short, chunked}[turn%2]
	case refused:
		return failed
	case noFault, silentWatches:
	}
	return relayed
}

// meet returns the fate of a request. A watch ends with the next fault.
func (p *faultyProxy) meet(r *http.Request, end context.CancelFunc) fate {
	query := r.URL.Query()
	watches := query.Get("watch") != ""
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if watches {
		p.open = append(p.open, openWatch{r.URL.Path, end})
	}
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, p.path) {
		return relayed
	}
	if watches {
		return p.fault.ofWatch(query.Get("sendInitialEvents") == "true")
	}
	p.lists++
	return p.fault.ofList(p.lists)
}

// fateKey is the key of the fate in the context of a request.
type fateKey struct{}

// ServeHTTP answers a request as the fault says.
func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	fate := p.meet(r, end)
	switch fate {
	case unanswered:
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	case failed:
		http.Error(w, "not now", http.StatusInternalServerError)
	case expired:
		http.Error(w, "expired", http.StatusGone)
	case relayed, short, chunked, stopped:
		p.relay.ServeHTTP(w, r.WithContext(context.WithValue(ctx, fateKey{}, fate)))
	}
}

// shorten cuts the answer to a list, or to a streaming one, behind its first item where that is its fate.
func shorten(r *http.Response) error {
	fate, _ := r.Request.Context().Value(fateKey{}).(fate)
	if fate == relayed || r.StatusCode != http.StatusOK {
		return nil
	}
	first, err := firstOf(r)
	if err != nil {
		return err
	}
	_ = r.Body.Close()
	switch body := io.Reader(bytes.NewReader(first)); fate {
	case stopped:
		r.Body = io.NopCloser(io.MultiReader(body, nothing{r.Request.Context()}))
	case chunked:
		r.Body, r.ContentLength = io.NopCloser(body), -1
		r.Header.Del("Content-Length")
	default:
		r.Body, r.ContentLength = io.NopCloser(body), int64(len(first))
		r.Header.Set("Content-Length", strconv.Itoa(len(first)))
	}
	return nil
}

// nothing is what follows where an answer stops.
type nothing struct{ ctx context.Context } //nolint:containedctx // a reader has no context of its own

// Read waits until the client gives up.
func (s nothing) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// firstOf reads an answer up to the end of its first item or event.
func firstOf(r *http.Response) ([]byte, error) {
	protobuf := strings.Contains(r.Header.Get("Content-Type"), "protobuf")
	streams := r.Request.URL.Query().Get("watch") != ""
	switch {
	case streams && protobuf:
		length := make([]byte, 4)
		if _, err := io.ReadFull(r.Body, length); err != nil {
			return nil, err
		}
		event := make([]byte, binary.BigEndian.Uint32(length))
		_, err := io.ReadFull(r.Body, event)
		return slices.Concat(length, event), err
	case streams:
		return bufio.NewReader(r.Body).ReadBytes('\n')
	}
	list, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	end := endOfFirstItem
	if protobuf {
		end = endOfFirstMessage
	}
	n, err := end(list)
	if err != nil {
		return nil, fmt.Errorf("cut a list: %w", err)
	}
	return list[:n], nil
}

// endOfFirstItem is where the first item of a list in JSON ends.
func endOfFirstItem(list []byte) (int, error) {
	d := json.NewDecoder(bytes.NewReader(list))
	for {
		if token, err := d.Token(); err != nil {
			return 0, err
		} else if token == "items" {
			break
		}
	}
	_, err := d.Token() // [
	if err == nil {
		err = d.Decode(&json.RawMessage{})
	}
	return int(d.InputOffset()), err
}

// endOfFirstMessage is where the first item of a list in protobuf ends: in both the envelope and the list, what counts is field 2.
func endOfFirstMessage(list []byte) (int, error) {
	at, within := len("k8s\x00"), false
	for {
		number, kind, n := protowire.ConsumeTag(list[at:])
		if n < 0 || kind != protowire.BytesType {
			return 0, errors.New("no list in protobuf")
		}
		at += n
		_, prefix := protowire.ConsumeVarint(list[at:])
		_, size := protowire.ConsumeBytes(list[at:])
		switch {
		case size < 0:
			return 0, errors.New("no item")
		case number != 2:
			at += size
		case within:
			return at + size, nil
		default:
			at, within = at+prefix, true
		}
	}
}
