package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/rest"
)

// half is an API server that lists KafkaProxies, and no KafkaServices.
type half struct{ services int }

const configuresBoth = `
apiVersion: pod-reloader.io/v1alpha1
kind: Configuration
referents:
- {id: proxies, gvr: {group: kroxylicious.io, version: v1alpha1, resource: kafkaproxies}}
- {id: services, gvr: {group: kroxylicious.io, version: v1alpha1, resource: kafkaservices}}
`

func (h half) RoundTrip(r *http.Request) (*http.Response, error) {
	status := func(code int, reason, message string) (*http.Response, error) {
		return h.answer(r, code, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
		})
	}
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "":
		return status(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden")
	case strings.HasSuffix(r.URL.Path, "/configmaps/settings"):
		return h.answer(r, http.StatusOK, map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"namespace": "shop", "name": "settings", "resourceVersion": "1"},
			"data": map[string]any{"config.yaml": configuresBoth},
		})
	case strings.HasSuffix(r.URL.Path, "/kafkaservices"):
		return status(h.services, http.StatusText(h.services), "conversion webhook failed")
	case r.URL.Query().Get("watch") != "":
		<-r.Context().Done()
		return nil, r.Context().Err()
	default:
		return h.answer(r, http.StatusOK, map[string]any{
			"kind": "KafkaProxyList", "apiVersion": "kroxylicious.io/v1alpha1", "metadata": map[string]any{"resourceVersion": "1"},
			"items": []any{map[string]any{
				"kind": "KafkaProxy", "apiVersion": "kroxylicious.io/v1alpha1",
				"metadata": map[string]any{"namespace": "shop", "name": "p", "uid": "u", "resourceVersion": "1"},
			}},
		})
	}
}

func (half) answer(r *http.Request, code int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r,
	}, err
}

func TestGraphShowsWhatCanBeReadAndWhyTheRestCannot(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{
		http.StatusInternalServerError: "unsynced: the resource kafkaservices.kroxylicious.io cannot be read: conversion webhook failed",
		http.StatusForbidden:           "forbidden: the resource kafkaservices.kroxylicious.io",
	} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				assert.Zero(t, Run(t.Context(), Process{
					Args: []string{"graph", "-n", "shop", "--config=configmap:shop/settings"}, Stdout: &stdout, Stderr: &stderr, Getenv: unset,
					Cluster: &rest.Config{Host: "http://api", Transport: half{code}},
				}))
				assert.Equal(t, "kafkaproxies.kroxylicious.io/p in namespace shop  [ok]\nkafkaservices.kroxylicious.io  ["+want+"]\n", stdout.String())
				assert.Empty(t, stderr.String())
			})
		})
	}
}
