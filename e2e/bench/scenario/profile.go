package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// profiler is the address at which pod-reloader serves profiles, when they are asked for.
func (e *environment) profiler() (args []string, err error) {
	if e.bench.Profiles == "" {
		return nil, nil
	}
	if e.profiles, err = freeAddress(e.cp); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(e.bench.Profiles, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory for profiles: %w", err)
	}
	return []string{"--enable-pprof", "--pprof-addr=" + e.profiles}, nil
}

// profiled does something while the use of the processors by pod-reloader and the API server is profiled.
func (e *environment) profiled(ctx context.Context, atMost time.Duration, do func() error) error {
	if e.bench.Profiles == "" {
		return do()
	}
	done, what := make(chan error, 2), "profile?seconds="+strconv.Itoa(int(atMost.Seconds()))
	go func() { done <- e.fetch(ctx, http.DefaultClient, "http://"+e.profiles, what, "cpu") }()
	server, err := rest.HTTPClientFor(e.cp.Admin())
	if err != nil {
		return fmt.Errorf("fetch a profile: %w", err)
	}
	go func() { done <- e.fetch(ctx, server, "https://"+e.cp.Address(), what, "apiserver-cpu") }()
	return errors.Join(do(), <-done, <-done)
}

// heap stores what is on pod-reloader's heap.
func (e *environment) heap(ctx context.Context, moment string) error {
	if e.bench.Profiles == "" {
		return nil
	}
	return e.fetch(ctx, http.DefaultClient, "http://"+e.profiles, "heap", "heap-"+moment)
}

// fetch stores a profile as SCENARIO-NAME.pprof.
func (e *environment) fetch(ctx context.Context, by *http.Client, host, what, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/debug/pprof/"+what, nil)
	if err != nil {
		return fmt.Errorf("fetch a profile: %w", err)
	}
	response, err := by.Do(request)
	if err != nil {
		return fmt.Errorf("fetch a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	file, err := os.Create(filepath.Join(e.bench.Profiles, e.name+"-"+name+".pprof"))
	if err != nil {
		return fmt.Errorf("store a profile: %w", err)
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
