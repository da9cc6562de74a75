package app

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// buildConfiguration builds the watch of the structured configuration; nothing, if there is none. Every replica applies it
// by itself, the leader reports it.
func (b *builder) buildConfiguration(mgr manager.Manager) error {
	location := b.options.Selection.Configuration
	if location.IsZero() {
		return nil
	}
	client, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return fmt.Errorf("make a client for the configuration: %w", err)
	}
	if b.permissions, err = b.buildPermissionCheck(mgr); err != nil {
		return err
	}
	log := b.log.WithName("configuration").WithValues("config", location.String())
	b.applier = refresh.NewApplier(refresh.ApplierOptions{
		Kinds: b.kinds,
		Referents: func(definitions []referent.Definition) []string {
			b.permissions.Configure(definitions)
			return b.chain.Configure(definitions)
		},
		Rejected: b.chain.Reject,
		Flags:    b.options.Selection.Kinds,
		Recorder: b.events,
		Metrics:  b.registry,
		Log:      log,
	})
	if b.configuration, err = refresh.NewSource(refresh.SourceOptions{
		Location: location, Client: client, Pod: podReference(b.options.Pod), Offer: b.applier.Offer, Log: log,
	}); err != nil {
		return err
	}
	b.chain.OnUnpublished(reportUnpublished(b.events))
	b.chain.OnIgnored(reportIgnored(b.events))
	if err := mgr.Add(manager.RunnableFunc(b.chain.Lead)); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(b.applier.Lead))
}

// podReference names our own pod for Events; nil if it is not known.
func podReference(pod options.Pod) *corev1.ObjectReference {
	if pod.Name == "" || pod.Namespace == "" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID)}
}
