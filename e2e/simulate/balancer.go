package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// serviceName is the DNS name of the webhook's Service.
const serviceName = "pod-reloader.pod-reloader.svc"

// plainClient speaks HTTP from a host of the network.
func (s *simulation) plainClient(from string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return s.net.Dial(ctx, from, address) },
	}}
}

// shortcut returns the transport of a client of the API server.
func (s *simulation) shortcut(online context.Context, next http.RoundTripper, client string) http.RoundTripper {
	refused := func() bool { return isProgram(client) && s.faults.restarting.Load() > 0 }
	return &shortcut{next: next, server: s.api, client: client, online: online, refused: refused, all: s.history.Seed%connectedOf > 0}
}

// webhookClient speaks HTTP from the API server to a replica.
func (s *simulation) webhookClient(r *replica) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.net.Dial(ctx, apiHost, net.JoinHostPort(r.name, webhookPort))
		},
	}}
}

var errNoEndpoint = errors.New("no endpoints available for service \"pod-reloader\"")

// callWebhook sends a review to one of the replicas of an installation, as the API server does through the Service.
func (s *simulation) callWebhook(ctx context.Context, second bool, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
	if err := s.faults.webhook(ctx, s, review); err != nil {
		return nil, err
	}
	r := s.pick(second)
	if r == nil {
		return nil, errNoEndpoint
	}
	if r.frozen.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.calls.Add(1)
	return post(ctx, r.client, review)
}

// pick chooses the replica that answers.
func (s *simulation) pick(second bool) *replica {
	s.balancing.Lock()
	defer s.balancing.Unlock()
	ready := s.endpoints(second)
	if len(ready) == 0 {
		return nil
	}
	return ready[s.balance.IntN(len(ready))]
}

func post(ctx context.Context, client *http.Client, review *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	timeout := 3 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://"+serviceName+"/mutate?timeout="+timeout.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the webhook answered %s: %s", response.Status, content)
	}
	answer := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(content, answer); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	return answer, nil
}
