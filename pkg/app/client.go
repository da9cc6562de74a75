package app

import (
	"errors"
	"fmt"
	"runtime"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RESTConfig returns the way to the API server: an explicit kubeconfig, the one that KUBECONFIG names, or
// ~/.kube/config; if there is none, the service account of the pod. The client does not limit its own rate: the API server has
// priorities and fairness for that, and a queue in here would only hide them.
func RESTConfig(kubeconfig, version string) (*rest.Config, error) {
	config, err := clientConfig(kubeconfig).ClientConfig()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	config.QPS = -1
	config.UserAgent = fmt.Sprintf("pod-reloader/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
	return config, nil
}

// ContextNamespace returns the namespace that kubectl would take by default: that of the kubeconfig's context, or of the
// pod.
func ContextNamespace(kubeconfig string) (string, error) {
	namespace, _, err := clientConfig(kubeconfig).Namespace()
	if err != nil {
		return "", kubeconfigError(err)
	}
	return namespace, nil
}

// kubeconfigError says that there is no usable kubeconfig, and what to do.
func kubeconfigError(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("there is no kubeconfig, or it has no current context")
	}
	return fmt.Errorf("find the API server: %w; name a kubeconfig with --kubeconfig or the variable KUBECONFIG", err)
}

func clientConfig(kubeconfig string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
}

// newScheme knows the few types that the program handles as such: workloads are raw objects, config objects metadata.
func newScheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*apiruntime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}
