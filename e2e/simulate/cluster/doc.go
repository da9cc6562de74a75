// Package cluster models the workload controllers, the garbage collector and the kubelet of Kubernetes.
//
// It decides which pods are kept, replaced and started when templates change, as the controllers of Kubernetes 1.36 do
// (k8s.io/kubernetes/pkg/controller). A Rollout is a Deployment to it, which can be restarted without a new template as well
// (rollout.go). It works on a Store, which the model of the API server provides. Nothing runs by
// itself: Dirty receives every stored change, Pending lists the pieces of work that changes have caused, and Work does one
// pass of one piece. The caller chooses the order and the delays, so a history is a sequence of names.
//
// What differs from reality, on purpose:
//   - A pass reads the stored state. Real controllers read caches that lag, and wait until these have seen their own writes:
//     the decisions are the same. The lag is modelled by the delay of the pieces.
//   - A deleted pod goes at once. There is no grace period and no terminating pod.
//   - Pods have their node from the beginning: there is no scheduler. Every node can run every pod, and a DaemonSet runs
//     on every node, whatever its node selector. Its maxSurge is ignored.
//   - Hashes in names are hashes of the template, but not the ones that Kubernetes computes.
//   - There are no Events, no PersistentVolumeClaims, and no backoff; a Job runs one pod.
//   - Defaults of the API server are assumed where a field is absent, but templates are compared as they are stored, in their
//     typed form: an absent field and its default differ unless the store fills in defaults.
//
// What does not differ, although it surprises: a StatefulSet with ordered pods does not replace a pod that never becomes
// ready. After a broken rollout is undone, that pod must be deleted by hand. With podManagementPolicy Parallel it need not be.
package cluster
