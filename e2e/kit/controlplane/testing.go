package controlplane

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startTimeout bounds a start that a test waits for, not counting the build.
const startTimeout = 2 * time.Minute

// WithoutMutationDetector is the environment of programs that are not ours. The detector ends a program that writes to an
// object of its caches; make test sets it for the program and the tests, and processes inherit it.
const WithoutMutationDetector = "KUBE_CACHE_MUTATION_DETECTOR=false"

// Podless are the options of tests that need no pods.
func Podless() Options { return Options{Without: []string{KWOK, Scheduler}} }

// idleControllers are those that no test needs. Some look around every 100 ms, and each has caches that the API server fills.
var idleControllers = []string{
	"certificatesigningrequest-approving-controller", "certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller", "endpointslice-mirroring-controller", "ephemeral-volume-controller",
	"horizontal-pod-autoscaler-controller", "kube-apiserver-serving-clustertrustbundle-publisher-controller",
	"legacy-serviceaccount-token-cleaner-controller", "node-ipam-controller", "persistentvolume-attach-detach-controller",
	"persistentvolume-binder-controller", "persistentvolume-expander-controller", "persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller", "resourceclaim-controller", "service-cidr-controller",
	"storage-version-migrator-controller", "storageversion-garbage-collector-controller", "ttl-controller",
	"volumeattributesclass-protection-controller",
}

// forTests are options for control planes of tests, which are shorter of processors than of memory: garbage is collected
// a quarter as often while there is little of it. Each component runs on one processor at a time: with two, and as many components
// as there are at once, a third of the processor time goes into goroutines that look for work and wake each other. With the
// mutation detector, the components of Kubernetes would compare all that they have cached each second.
func forTests(options Options) Options {
	options.Env = append([]string{"GOGC=400", "GOMEMLIMIT=500MiB", "GOMAXPROCS=1", WithoutMutationDetector}, options.Env...)
	args := map[string][]string{}
	maps.Copy(args, options.Args)
	args[ControllerManager] = append([]string{"--controllers=*,-" + strings.Join(idleControllers, ",-")}, args[ControllerManager]...)
	options.Args = args
	return options
}

// New starts a control plane for one test, which fails if that fails, and stops it with the test.
func New(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	cp, err := Start(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	cp.owner = tb
	tb.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return cp
}

// Main is for TestMain: it starts a control plane that the tests of a package share, hands it over,
// runs the tests and stops it. The result is the exit code:
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Main(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { cp = c }))
//	}
func Main(m interface{ Run() int }, options Options, use func(*ControlPlane)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cp, err := Start(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	finished := make(chan struct{})
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		select {
		case <-finished:
		case <-ctx.Done(): // end in order; the tests end with the process
			_ = cp.Stop()
			os.Exit(130)
		}
	}()
	use(cp)
	code := m.Run()
	close(finished)
	<-interrupted
	if err := cp.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Namespace creates a namespace of its own for a test and deletes its workloads after the test, without
// waiting until they are gone; where the control plane ends with the same test, they go with that. It
// returns when pods can be created in it.
func (cp *ControlPlane) Namespace(tb testing.TB, labels ...map[string]string) string {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespacePrefix(tb.Name()),
		Labels:       merge(labels),
	}}
	if err := cp.client.Create(tb.Context(), namespace); err != nil {
		tb.Fatalf("create a namespace: %v", err)
	}
	if tb != cp.owner {
		tb.Cleanup(func() { cp.clear(tb, namespace.Name) })
	}
	if !cp.runs(ControllerManager) {
		return namespace.Name
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := cp.awaitNamespace(ctx, namespace.Name); err != nil {
		tb.Fatal(err)
	}
	return namespace.Name
}

// clear deletes the workloads of a namespace and what their controllers have made. The rest goes with the control plane: to delete a
// namespace costs the API server as much as 50 other requests, since each kind of the API is looked for in it.
func (cp *ControlPlane) clear(tb testing.TB, namespace string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, kind := range []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &batchv1.CronJob{},
		&batchv1.Job{}, &appsv1.ReplicaSet{}, &appsv1.ControllerRevision{}, &corev1.Pod{},
	} {
		err := cp.client.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			tb.Logf("delete each %T of namespace %s: %v", kind, namespace, err)
		}
	}
}

// namespacePrefix makes a test's name one that a namespace may have, with space for a random suffix.
func namespacePrefix(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, strings.TrimPrefix(name, "Test"))
	if len(name) > 40 {
		name = name[:40]
	}
	return "t-" + strings.Trim(name, "-") + "-"
}

func merge(maps []map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			merged[k] = v
		}
	}
	return merged
}
