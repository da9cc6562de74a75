package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// askTimeout bounds one question for readiness; a frozen process does not answer.
const askTimeout = time.Second

// URLReady asks an http URL; what answers 200 is ready.
func URLReady(url string) func(context.Context) error {
	return urlReady(&http.Client{Timeout: askTimeout}, url)
}

// tlsReady is URLReady for endpoints that the authority certified.
func tlsReady(a *authority) func(url string) func(context.Context) error {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	client := &http.Client{Timeout: askTimeout, Transport: transport}
	return func(url string) func(context.Context) error { return urlReady(client, url) }
}

func urlReady(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		request.Close = true // a restarted process must not be asked on a dead connection
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("ask for readiness: %w", err)
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2048))
		return fmt.Errorf("%s answers %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
}

// await asks until the answer is nil or ctx is done.
func await(ctx context.Context, what string, ask func(context.Context) error) error {
	return poll.Until(ctx, what, readyInterval, ask)
}
