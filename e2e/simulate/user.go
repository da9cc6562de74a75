package simulate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
)

// user sends requests to the API server from a host of the network.
type user struct{ client *http.Client }

var _ act.API = user{}

// Do sends one request.
func (u user) Do(ctx context.Context, r act.Request) (act.Response, error) {
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
	return act.Response{Status: response.StatusCode, Body: body, Warnings: response.Header.Values("Warning")}, nil
}
