package simulate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
)

// user sends requests to the API server from a host of the network.
type user struct {
	client *http.Client
	// names replaces the prefix of annotations and labels in what is sent, which acts write with the default one, back that in answers; nil
	// where it is the default.
	names, back *strings.Replacer
}

// newUser makes a user of an installation with a prefix.
func newUser(client *http.Client, prefix string) user {
	if prefix == act.Prefix {
		return user{client: client}
	}
	escape := strings.NewReplacer("/", "~1") // as in a JSON pointer
	return user{
		client: client,
		names:  strings.NewReplacer(act.Prefix, prefix, escape.Replace(act.Prefix), escape.Replace(prefix)),
		back:   strings.NewReplacer(prefix, act.Prefix),
	}
}

var _ act.API = user{}

// Do sends one request.
func (u user) Do(ctx context.Context, r act.Request) (act.Response, error) {
	if u.names != nil {
		r.Body = []byte(u.names.Replace(string(r.Body)))
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, apiURL+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return act.Response{}, fmt.Errorf("make the request: %w", err)
	}
	if r.ContentType != "" {
		request.Header.Set("Content-Type", r.ContentType)
	}
	request.Header.Set("Accept", "application/json")
	response, err := u.client.Do(request)
	if err != nil {
		return act.Response{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return act.Response{}, fmt.Errorf("read the answer: %w", err)
	}
	if u.back != nil {
		body = []byte(u.back.Replace(string(body)))
	}
	return act.Response{Status: response.StatusCode, Body: body, Warnings: response.Header.Values("Warning")}, nil
}
