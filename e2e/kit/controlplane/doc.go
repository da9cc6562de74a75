// Package controlplane runs a real Kubernetes control plane on loopback for tests, benchmarks and
// development: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as published, and
// KWOK in place of kubelets. It builds them from pinned modules when they are not there yet
// (package toolchain), is ready after some three seconds and leaves nothing behind, not even when
// the process that started it is killed.
//
// Beyond running the components it offers what tests of a controller with a webhook need:
//
//   - a token or a client certificate for any [Identity], so that a program under test has exactly the RBAC
//     of its manifests ([ControlPlane.Config], [ControlPlane.WriteKubeconfig]);
//   - the API requests that were made, from the API server's own audit log ([AuditLog]);
//   - components and further programs that can be stopped, killed, frozen and started anew
//     ([Process]), and slowed down ([Proxy]);
//   - kube-proxy's part for a webhook's Service ([Balancer]), and a serving certificate for it.
//
// Several control planes may run at once, in one process or in many; namespaces are the unit of
// isolation within one. Nothing here imports the program under test.
package controlplane
