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

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// profiler stores profiles of pod-reloader and of the API server, if there is a directory for them.
type profiler struct {
	cp *controlplane.ControlPlane
	// directory is for the files; empty means none.
	directory string
	// address is where the one replica serves its profiles.
	address string
}

// enabled reports whether profiles are asked for.
func (p *profiler) enabled() bool { return p.directory != "" }

// args makes the directory, and returns the arguments with which pod-reloader serves profiles.
func (p *profiler) args() (args []string, err error) {
	if p.address, err = freeAddress(p.cp); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.directory, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory for profiles: %w", err)
	}
	return []string{"--enable-pprof", "--pprof-addr=" + p.address}, nil
}

// during does something while the use of the processors by pod-reloader and the API server is profiled.
func (p *profiler) during(ctx context.Context, scenario string, atMost time.Duration, do func() error) error {
	if !p.enabled() {
		return do()
	}
	done, what := make(chan error, 2), "profile?seconds="+strconv.Itoa(int(atMost.Seconds()))
	go func() { done <- p.fetch(ctx, http.DefaultClient, "http://"+p.address, what, scenario+"-cpu") }()
	server, err := rest.HTTPClientFor(p.cp.Admin())
	if err != nil {
		return fmt.Errorf("fetch a profile: %w", err)
	}
	go func() { done <- p.fetch(ctx, server, "https://"+p.cp.Address(), what, scenario+"-apiserver-cpu") }()
	return errors.Join(do(), <-done, <-done)
}

// heap stores what is on pod-reloader's heap.
func (p *profiler) heap(ctx context.Context, name string) error {
	if !p.enabled() {
		return nil
	}
	return p.fetch(ctx, http.DefaultClient, "http://"+p.address, "heap", name)
}

// fetch stores a profile as NAME.pprof.
func (p *profiler) fetch(ctx context.Context, by *http.Client, host, what, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/debug/pprof/"+what, nil)
	if err != nil {
		return fmt.Errorf("fetch a profile: %w", err)
	}
	response, err := by.Do(request)
	if err != nil {
		return fmt.Errorf("fetch a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	file, err := os.Create(filepath.Join(p.directory, name+".pprof"))
	if err != nil {
		return fmt.Errorf("store a profile: %w", err)
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
