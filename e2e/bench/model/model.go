// Package model is an API server full of workloads that were adopted before, for a cluster that is too large to be created
// in etcd: the model that the simulator has, served on loopback.
package model

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

const (
	// Probes are the workloads whose configuration has changed while pod-reloader was down; they are spread over all.
	Probes = 10
	// inNamespace is how many workloads a namespace has.
	inNamespace = 500
	// Home is the namespace of pod-reloader.
	Home = "pod-reloader"
	// Selected is a label of all namespaces with workloads; its value is yes.
	Selected = "example.com/reloaded"
	prefix   = "pod-reloader.cs.sap.com/"
	// unchanged is the value of all configuration.
	unchanged = "0"
)

// Cluster says what a Model is full of.
type Cluster struct {
	// Workloads is their number. Each has a ConfigMap and a Secret of its own.
	Workloads int
	// Shared puts all workloads into one namespace, and has each list and use one more ConfigMap, the same for all.
	Shared bool
}

// shared is the ConfigMap that all workloads list.
const shared = "shared"

// Model is such an API server.
type Model struct {
	Cluster
	server  *apiserver.Server
	http    *http.Server
	address string
	ring    digest.Ring
	// written counts the writes of workloads; reloads has one for each that gave the pod template another hash.
	written atomic.Int64
	reloads chan struct{}
}

// Start fills a Model and serves it.
func Start(ctx context.Context, cluster Cluster) (*Model, error) {
	m := &Model{Cluster: cluster, reloads: make(chan struct{}, cluster.Workloads)}
	var err error
	if m.server, err = apiserver.New(apiserver.Options{OnCommit: m.committed}); err != nil {
		return nil, fmt.Errorf("make a model of an API server: %w", err)
	}
	if err := m.fill(); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	m.address = listener.Addr().String()
	m.http = &http.Server{Handler: m.server, ReadHeaderTimeout: time.Minute}
	go func() { _ = m.http.Serve(listener) }()
	return m, nil
}

// Address is where it listens.
func (m *Model) Address() string { return m.address }

// Written counts the writes of workloads.
func (m *Model) Written() int { return int(m.written.Load()) }

// Stop ends it.
func (m *Model) Stop() error {
	m.server.Stop()
	return m.http.Close()
}

// committed is called for each stored change.
func (m *Model) committed(c world.Commit) {
	if c.Call == nil || c.Key.Resource != world.Deployments {
		return
	}
	if m.written.Add(1); hashOf(c.New) != hashOf(c.Old) {
		m.reloads <- struct{}{}
	}
}

// hashOf is the config-hash on the pod template; empty means none.
func hashOf(workload world.Object) string {
	hash, _, _ := unstructured.NestedString(workload, "spec", "template", "metadata", "annotations", prefix+"config-hash")
	return hash
}

// Await waits for one more reload.
func (m *Model) Await(ctx context.Context) error {
	const patience = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-m.reloads:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("await a reload: %w", ctx.Err())
	}
}

// fill stores the cluster: the digest key, and a ConfigMap and a Secret for each workload.
func (m *Model) fill() error {
	key := bytes.Repeat([]byte("k"), 32)
	var err error
	if m.ring, err = digest.NewRing(map[string][]byte{"key": key}); err != nil {
		return fmt.Errorf("make a digest key: %w", err)
	}
	err = m.store(world.Secrets, Home, "pod-reloader-digest-key", world.Object{
		"data": map[string]any{"key": base64.StdEncoding.EncodeToString(key)},
	})
	if err != nil {
		return err
	}
	if m.Shared {
		if err := m.StoreShared(); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < m.Workloads; from += inNamespace {
		group.Go(func() error { return m.fillNamespace(from, min(from+inNamespace, m.Workloads)) })
	}
	return group.Wait()
}

func (m *Model) fillNamespace(from, to int) error {
	if err := m.namespace(m.namespaceOf(from), map[string]any{Selected: "yes"}); err != nil {
		return err
	}
	for n := from; n < to; n++ {
		value := unchanged
		if n%(m.Workloads/Probes) == 0 {
			value = "an earlier content"
		}
		err := errors.Join(
			m.store(world.ConfigMaps, m.namespaceOf(n), named("config", n), configMapObject(unchanged)),
			m.store(world.Secrets, m.namespaceOf(n), named("secret", n), world.Object{"data": map[string]any{"key": "MA=="}}),
			m.deploy(n, named("web", n), value),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) namespaceOf(n int) string {
	if m.Shared {
		n = 0
	}
	return named("team", n/inNamespace)
}

func (m *Model) namespace(name string, labels map[string]any) error {
	return m.store(world.Namespaces, "", name, world.Object{"metadata": map[string]any{"labels": labels}})
}

func (m *Model) store(resource world.Resource, namespace, name string, o world.Object) error {
	if _, err := m.server.Store(world.Key{Resource: resource, Namespace: namespace, Name: name}, o); err != nil {
		return fmt.Errorf("store %s %s/%s: %w", resource.Plural, namespace, name, err)
	}
	return nil
}

func configMapObject(value string) world.Object {
	return world.Object{"data": map[string]any{"key": value}}
}

// StoreShared creates the ConfigMap that all workloads list, with the content that they were adopted with.
func (m *Model) StoreShared() error {
	return m.store(world.ConfigMaps, m.namespaceOf(0), shared, configMapObject(unchanged))
}

// DeleteShared deletes it.
func (m *Model) DeleteShared() {
	m.server.Remove(world.Key{Resource: world.ConfigMaps, Namespace: m.namespaceOf(0), Name: shared})
}

// Change gives the ConfigMap of some workload other content.
func (m *Model) Change(round int) error {
	n := m.Workloads - 1 - round*(m.Workloads/100)%m.Workloads
	return m.store(world.ConfigMaps, m.namespaceOf(n), named("config", n), configMapObject(fmt.Sprint("changed-", round)))
}

// named is prefix-n.
func named(prefix string, n int) string { return prefix + "-" + strconv.Itoa(n) }
