// Package install holds the tests of the installation as it is documented: manifests/ applied by kubectl as they are,
// with the controllers of the real cert-manager, and nothing of them changed. The API server finds the webhook through
// its Service, verified by the certificate that cert-manager issued and the caBundle that its CA injector filled in.
//
// What a node would do, the tests do in its place. [kubelet] runs a process for each pod of the Deployment, from the
// pod's own specification and with the Secret mounted as a kubelet mounts it. [network] carries what the API server
// sends to the address of a Service to a ready endpoint of it, as kube-proxy would.
package install
