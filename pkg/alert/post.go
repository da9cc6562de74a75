package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// attemptLimit is how long one attempt may take, attempts how many there are.
	attemptLimit = 10 * time.Second
	attempts     = 4
	// firstWait is the wait after the first attempt; each one doubles. longestWait bounds what a sink asks for by Retry-After.
	firstWait, longestWait = time.Second, 30 * time.Second
	// bodyLimit is how much of an answer is read, so that the connection can be used again.
	bodyLimit = 64 << 10
)

// poster posts payloads to one URL.
type poster struct {
	client *http.Client
	url    string
}

func newPoster(c Config) poster {
	proxy := http.ProxyFromEnvironment
	if c.Proxy != nil {
		proxy = http.ProxyURL(c.Proxy)
	}
	p := poster{client: &http.Client{
		Transport: withoutRedirects{&http.Transport{
			Proxy: proxy, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: senders, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: attemptLimit,
		}},
		Timeout: attemptLimit,
	}}
	if c.URL != nil {
		p.url = c.URL.String()
	}
	return p
}

// withoutRedirects takes the destination out of each answer. A redirect would take the message, and a token in the URL's path, to another host.
// To refuse it is not enough: where the destination repeats that path and cannot be parsed, the error quotes it.
type withoutRedirects struct{ http.RoundTripper }

// RoundTrip replaces the embedded one.
func (t withoutRedirects) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Location")
	}
	return response, err
}

// post delivers a payload, with retries. The error never has the URL.
func (p poster) post(ctx context.Context, body []byte) (outcome, error) {
	wait := firstWait
	for n := 1; ; n++ {
		status, after, err := p.attempt(ctx, body)
		switch {
		case err == nil && status/100 == 2:
			return delivered, nil
		case err == nil && status/100 != 5 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
			return refused, fmt.Errorf("the sink answered %d %s", status, http.StatusText(status))
		case err == nil:
			err = fmt.Errorf("the sink answered %d %s", status, http.StatusText(status))
		}
		if n == attempts || pause(ctx, max(wait, min(after, longestWait))) != nil {
			return failed, fmt.Errorf("after %d attempts: %w", n, err)
		}
		wait *= 2
	}
}

// attempt posts once, and returns the status and what Retry-After says.
func (p poster) attempt(ctx context.Context, body []byte) (status int, after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, 0, withoutURL(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "pod-reloader")
	response, err := p.client.Do(request)
	if err != nil {
		return 0, 0, withoutURL(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, bodyLimit))
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		after = time.Duration(min(seconds, int(longestWait/time.Second))) * time.Second
	}
	return response.StatusCode, after, nil
}

// withoutURL takes the URL out of an error of package http.
func withoutURL(err error) error {
	var with *url.Error
	if !errors.As(err, &with) {
		return err
	}
	if with.Timeout() {
		return errors.New("no answer in time")
	}
	return withoutURL(with.Err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
