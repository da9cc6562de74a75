package install_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// network is the way from the API server into the cluster. Clusters whose control plane is apart from the nodes have the
// API server send what is meant for Services through a tunnel (its egress selector); this is the other end of the tunnel.
// So a webhook configuration works as it is shipped: with a Service, its name in the certificate and its caBundle.
type network struct {
	dir      string
	server   *http.Server
	listener net.Listener

	mutex sync.Mutex
	// reach and read are there when the control plane is.
	reach func(pod string, port int32) (string, error)
	read  client.Reader
	open  map[net.Conn]bool
	// carried counts the connections by the Service that they were for.
	carried map[client.ObjectKey]int
}

// egressSelector is the configuration of the API server: everything for the cluster goes through the tunnel.
const egressSelector = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
  - name: cluster
    connection:
      proxyProtocol: HTTPConnect
      transport:
        uds:
          udsName: %s
`

func newNetwork() (*network, error) {
	dir, err := os.MkdirTemp("", "tunnel-") // a path that is short enough for a socket
	if err != nil {
		return nil, fmt.Errorf("make the tunnel: %w", err)
	}
	n := &network{dir: dir, open: map[net.Conn]bool{}, carried: map[client.ObjectKey]int{}}
	socket := filepath.Join(dir, "socket")
	if n.listener, err = net.Listen("unix", socket); err != nil {
		return nil, errors.Join(fmt.Errorf("make the tunnel: %w", err), os.RemoveAll(dir))
	}
	if err := os.WriteFile(n.config(), fmt.Appendf(nil, egressSelector, socket), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("make the tunnel: %w", err), n.close())
	}
	n.server = &http.Server{Handler: n}
	go func() { _ = n.server.Serve(n.listener) }()
	return n, nil
}

// config is the path of the API server's egress selector configuration.
func (n *network) config() string { return filepath.Join(n.dir, "egress.yaml") }

func (n *network) close() error {
	n.interrupt()
	return errors.Join(n.listener.Close(), os.RemoveAll(n.dir))
}

// connect gives the network of the cluster what it needs: where Services and endpoints are read, and where a port of a pod is.
func (n *network) connect(read client.Reader, reach func(pod string, port int32) (string, error)) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.read, n.reach = read, reach
}

// interrupt ends the connections that are open, so that the next request needs a new one.
func (n *network) interrupt() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for connection := range n.open {
		_ = connection.Close()
	}
}

// connections is how many connections a Service has got.
func (n *network) connections(service client.ObjectKey) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.carried[service]
}

// ServeHTTP answers CONNECT.
func (n *network) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(answer, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	backend, err := n.dial(request.Context(), request.Host)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadGateway)
		return
	}
	front, _, err := answer.(http.Hijacker).Hijack()
	if err != nil {
		_ = backend.Close()
		return
	}
	n.mutex.Lock()
	n.open[front], n.open[backend] = true, true
	n.mutex.Unlock()
	if _, err := io.WriteString(front, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		relay(front, backend)
	}
	n.mutex.Lock()
	delete(n.open, front)
	delete(n.open, backend)
	n.mutex.Unlock()
}

// relay copies both ways and closes both ends when one is at its end.
func relay(front, backend net.Conn) {
	var copying sync.WaitGroup
	for _, way := range [][2]net.Conn{{front, backend}, {backend, front}} {
		copying.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = front.Close()
			_ = backend.Close()
		})
	}
	copying.Wait()
}

// dial connects to a ready endpoint of the Service that has an address.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mutex.Lock()
	read, reach := n.read, n.reach
	n.mutex.Unlock()
	if read == nil {
		return nil, errors.New("the network is not connected yet")
	}
	service, port, err := serviceAt(ctx, read, address)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(service)
	pods, err := endpoints(ctx, read, key, port)
	if err != nil {
		return nil, err
	}
	failures := fmt.Errorf("service %s has no endpoint that answers", key)
	for pod, podPort := range pods {
		at, err := reach(pod, podPort)
		if err != nil {
			failures = errors.Join(failures, err)
			continue
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err != nil {
			failures = errors.Join(failures, err)
			continue
		}
		n.mutex.Lock()
		n.carried[key]++
		n.mutex.Unlock()
		return connection, nil
	}
	return nil, failures
}

// serviceAt finds the Service, and the name of its port, that has a cluster address.
func serviceAt(ctx context.Context, read client.Reader, address string) (*corev1.Service, string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", fmt.Errorf("read the address of a service: %w", err)
	}
	services := &corev1.ServiceList{}
	if err := read.List(ctx, services); err != nil {
		return nil, "", fmt.Errorf("look for the service at %s: %w", address, err)
	}
	for i := range services.Items {
		if services.Items[i].Spec.ClusterIP != host {
			continue
		}
		for _, p := range services.Items[i].Spec.Ports {
			if strconv.Itoa(int(p.Port)) == port {
				return &services.Items[i], p.Name, nil
			}
		}
	}
	return nil, "", fmt.Errorf("no service has the address %s", address)
}

// endpoints are the pods behind a port of a Service that are ready, with the port that each has for it.
func endpoints(ctx context.Context, read client.Reader, service client.ObjectKey, port string) (map[string]int32, error) {
	slices := &discoveryv1.EndpointSliceList{}
	err := read.List(ctx, slices, client.InNamespace(service.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of %s: %w", service, err)
	}
	pods := map[string]int32{}
	for _, slice := range slices.Items {
		for _, p := range slice.Ports {
			if p.Name == nil || *p.Name != port || p.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				if e.TargetRef != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
					pods[e.TargetRef.Name] = *p.Port
				}
			}
		}
	}
	return pods, nil
}
