// Package installation runs pod-reloader on a control plane of package controlplane as it is shipped: the objects of
// manifests/, rendered by `kubectl kustomize`, and the program itself, built from the working tree, as separate processes.
//
// A replica gets the arguments and the environment that the manifests' Deployment gives its container, reaches the API
// server as the manifests' service account and so has exactly its permissions, and serves the webhook with a real certificate
// behind a balancer that plays kube-proxy. Three things differ from a cluster, because there is no kubelet, no kube-proxy
// and no cert-manager: addresses and the directory of the certificate in the arguments, the client config of the webhook
// configuration, and that cert-manager's objects are left out. Where a suite asks for it, the webhook has a longer timeout.
//
// What a suite needs beyond that is here too: replicas that can be added, stopped, killed and frozen one by one, their
// metrics and logs, who leads, and a barrier ([Installation.Quiet]) that waits until the loop is through with
// everything that has happened so far.
package installation
