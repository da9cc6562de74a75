package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
)

// outside says why the installation does not look after a workload; it is empty if it does. The error says that the
// namespace's labels cannot be read: then the answer leaves them aside. They are listed, not got: that is the right that
// an installation with --namespace-selector has itself.
func outside(ctx context.Context, c client.Reader, s scope.Scope, u *unstructured.Unstructured) (string, error) {
	var namespaceLabels map[string]string
	var problem error
	if s.SelectsNamespaces() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		err := c.List(ctx, list, client.MatchingFields{"metadata.name": u.GetNamespace()})
		if err != nil {
			s.NamespaceSelector = labels.Everything()
			problem = fmt.Errorf("whether --namespace-selector selects the namespace cannot be told: %w", err)
		}
		for _, namespace := range list.Items {
			namespaceLabels = namespace.Labels
		}
	}
	return s.Outside(u.GetNamespace(), namespaceLabels, u.GetLabels()), problem
}

// warnings are the Warning Events that pod-reloader has sent about a workload. Without the right to list them the Report
// tells less, so that is no error of the command.
func warnings(ctx context.Context, c client.Reader, u *unstructured.Unstructured) ([]explain.Warning, error) {
	list := &eventsv1.EventList{}
	err := c.List(ctx, list, client.InNamespace(u.GetNamespace()), client.MatchingFields{
		"regarding.uid": string(u.GetUID()), "type": corev1.EventTypeWarning, "reportingController": "pod-reloader",
	})
	if err != nil {
		return nil, fmt.Errorf("why an attempt failed cannot be told, since the Events cannot be listed: %w", err)
	}
	var told []explain.Warning
	for _, event := range list.Items {
		at := event.EventTime.Time
		if event.Series != nil {
			at = event.Series.LastObservedTime.Time
		}
		told = append(told, explain.Warning{Time: at, Reason: event.Reason, Message: event.Note})
	}
	return told, nil
}
