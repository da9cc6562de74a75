// Package zeroing makes an HTTP client whose connections do not remember what came through them.
//
// configstate uses it: reading Secrets through net/http leaves their plain text in buffers that live as
// long as the connection. There are three below the body of a response: the record buffer of crypto/tls, in which
// records are decrypted in place; the buffered reader of net/http; and with HTTP/2 the frame buffer and up to 4 MiB of
// flow-control window for each stream. This client speaks HTTP/1.1, which has no third, and it clears the other two:
// each asks the connection below it to fill its buffer when that is empty, and an io.Reader may use all of the buffer
// it is given as scratch space. The connection made here overwrites it with zeros before it waits for more bytes.
//
// Through a proxy net/http makes the TLS connection itself. Its records are cleared like all others, but the last few KiB
// that came stay in its buffered reader until more come.
package zeroing

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
)

// IdleConnections bounds the connections that are kept for parallel reads of one host.
const IdleConnections = 64

// NewHTTPClient returns a client with the config's credentials, TLS settings, proxy and wrappers. Certificate files are
// read again for every connection, so that rotated ones are honoured; through a proxy, only those of the client. A config
// that brings its own Transport keeps it. The config's Timeout does not count: it would end watches, and every read has a
// context.
func NewHTTPClient(config *rest.Config) (*http.Client, error) {
	if config.Transport != nil {
		return rest.HTTPClientFor(config)
	}
	settings, err := settingsOf(config)
	if err != nil { // reported now, not at the first connection
		return nil, err
	}
	d := dialer{config: config, dial: config.Dial}
	if d.dial == nil {
		d.dial = (&net.Dialer{
			Timeout: dialTimeout,
			// HTTP/2 would ping; here the kernel finds out within half a minute that the other side is gone.
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
		}).DialContext
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         d.plain,
		DialTLSContext:      d.secure,
		TLSClientConfig:     settings, // for what comes through a proxy: net/http does not ask DialTLSContext then
		TLSHandshakeTimeout: handshakeTimeout,
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: IdleConnections,
		DisableCompression:  true, // the window of an inflater is one more buffer
	}
	if config.Proxy != nil {
		transport.Proxy = config.Proxy
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make the API server's client: %w", err)
	}
	return &http.Client{Transport: wrapped}, nil
}

// settingsOf reads the TLS settings of a config, certificate files included.
func settingsOf(config *rest.Config) (*tls.Config, error) {
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the TLS settings of the API server's client: %w", err)
	}
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	settings.NextProtos = []string{"http/1.1"}
	return settings, nil
}

type dialer struct {
	config *rest.Config
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// plain connects without TLS of its own: to a proxy, or to a server of a test.
func (d dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return forgetful{conn}, nil
}

// secure connects with TLS; there is one forgetful connection below it and one above.
func (d dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	settings, err := settingsOf(d.config)
	if err != nil {
		return nil, err
	}
	if settings.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("read the host of %q: %w", address, err)
		}
		settings.ServerName = host
	}
	conn, err := d.plain(ctx, network, address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, settings)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return forgetful{secured}, nil
}

// forgetful is a connection that clears the buffer it is to fill.
type forgetful struct {
	net.Conn
}

// Read clears all of p, which is the reader's to lose, and then waits for bytes.
func (c forgetful) Read(p []byte) (int, error) {
	clear(p)
	return c.Conn.Read(p)
}
