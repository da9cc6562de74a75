package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// The components, as [ControlPlane.Component] knows them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	KWOK              = "kwok"
)

// layout is where things are: the directories, the programs and the ports of one control plane.
type layout struct {
	dir, logs string
	// kubernetes, etcd and kwok are directories with programs.
	kubernetes, etcd, kwok string

	etcdPort, peerPort, apiserverPort              int
	controllerManagerPort, schedulerPort, kwokPort int
	// etcdAddress is where the API server looks for etcd: its own address or a proxy's.
	etcdAddress string
}

// serviceNetwork is where the API server takes the addresses of Services from; nothing routes there.
const serviceNetwork = "10.0.0.0/16"

func (l *layout) file(name string) string {
	return filepath.Join(l.dir, name)
}

func (l *layout) auditLog() string {
	return filepath.Join(l.logs, "audit.log")
}

func (l *layout) etcdProgram() Program {
	client, peer := "http://"+loopback(l.etcdPort), "http://"+loopback(l.peerPort)
	return Program{
		Name: Etcd,
		Path: filepath.Join(l.etcd, "etcd"),
		Args: []string{
			"--data-dir=" + l.file("etcd"),
			"--unsafe-no-fsync", // what a crash of the machine would lose is lost anyway
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--quota-backend-bytes=8589934592",
			// There is no other candidate for the lease; the default would be waited for at every start. With a heartbeat of
			// 20 ms, etcd takes twice as much of a processor while nothing happens.
			"--heartbeat-interval=50", "--election-timeout=250",
			// As kubeadm has it. By default, the API server sends no bookmarks for ten minutes where nothing of a kind changes.
			"--watch-progress-notify-interval=5s",
			"--log-level=warn",
		},
		Ready: URLReady(client + "/health"),
	}
}

func (l *layout) apiserverProgram(ready func(context.Context) error) Program {
	return Program{
		Name: APIServer,
		Path: filepath.Join(l.kubernetes, "kubernetes"),
		Args: []string{
			"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(l.apiserverPort),
			"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
			"--etcd-servers=http://" + l.etcdAddress,
			"--tls-cert-file=" + l.file("apiserver.crt"), "--tls-private-key-file=" + l.file("apiserver.key"),
			"--client-ca-file=" + l.file("ca.crt"), "--token-auth-file=" + l.file("tokens.csv"),
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + l.file("service-accounts.key"),
			"--service-account-signing-key-file=" + l.file("service-accounts.key"),
			"--service-cluster-ip-range=" + serviceNetwork,
			"--allow-privileged",
			"--profiling=false",
			// Without it open watches keep a server that is asked to end alive for a minute.
			"--shutdown-watch-termination-grace-period=1s",
			"--audit-policy-file=" + l.file("audit-policy.yaml"),
			"--audit-log-path=" + l.auditLog(),
			"--audit-log-mode=blocking-strict",
			"--audit-log-maxsize=100000", // never rotated, it is read from one file
		},
		Ready: ready,
	}
}

func (l *layout) controllerManagerProgram(ready func(string) func(context.Context) error) Program {
	return Program{
		Name: ControllerManager,
		Path: filepath.Join(l.kubernetes, "kubernetes"),
		Args: append(l.serving(l.controllerManagerPort),
			"--kubeconfig="+l.file(ControllerManager+".kubeconfig"),
			"--use-service-account-credentials",
			"--leader-elect=false",
			"--root-ca-file="+l.file("ca.crt"),
			"--service-account-private-key-file="+l.file("service-accounts.key"),
			"--cluster-signing-cert-file="+l.file("ca.crt"), "--cluster-signing-key-file="+l.file("ca.key"),
			"--service-cluster-ip-range="+serviceNetwork,
			// A machine under load, or a frozen KWOK, shall not cost pods their nodes.
			"--node-monitor-grace-period=10m",
			// The defaults (20 requests a second) would be what a benchmark measures.
			"--kube-api-qps=1000", "--kube-api-burst=2000",
		),
		Ready: ready("https://" + loopback(l.controllerManagerPort) + "/healthz"),
	}
}

func (l *layout) schedulerProgram(ready func(string) func(context.Context) error) Program {
	return Program{
		Name: Scheduler,
		Path: filepath.Join(l.kubernetes, "kubernetes"),
		Args: append(l.serving(l.schedulerPort),
			"--kubeconfig="+l.file(Scheduler+".kubeconfig"),
			"--leader-elect=false",
			"--kube-api-qps=1000", "--kube-api-burst=2000",
		),
		Ready: ready("https://" + loopback(l.schedulerPort) + "/readyz"),
	}
}

func (l *layout) kwokProgram() Program {
	address := loopback(l.kwokPort)
	return Program{
		Name: KWOK,
		Path: filepath.Join(l.kwok, "kwok"),
		Args: []string{
			"--kubeconfig=" + l.file(KWOK+".kubeconfig"),
			"--config=" + l.file("stages.yaml"),
			"--manage-all-nodes=true",
			// A lease would keep a restarted KWOK from its nodes until that of the former life ends.
			"--node-lease-duration-seconds=0",
			"--cidr=10.64.0.0/10",
			"--server-address=" + address,
		},
		Ready: URLReady("http://" + address + "/readyz"),
	}
}

// serving are the flags of a component's own endpoint, which is there for its health only.
func (l *layout) serving(port int) []string {
	return []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + l.file("apiserver.crt"), "--tls-private-key-file=" + l.file("apiserver.key"),
		"--profiling=false",
	}
}

// takePorts reserves a port for every endpoint.
func (l *layout) takePorts(from *ports) error {
	for _, port := range []*int{
		&l.etcdPort, &l.peerPort, &l.apiserverPort, &l.controllerManagerPort, &l.schedulerPort, &l.kwokPort,
	} {
		var err error
		if *port, err = from.take(); err != nil {
			return fmt.Errorf("reserve ports: %w", err)
		}
	}
	l.etcdAddress = loopback(l.etcdPort)
	return nil
}
