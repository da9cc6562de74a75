package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

// memory: what pod-reloader holds while many Secrets come and are there that no workload depends on.
func memory(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := e.createNamespace(ctx, e.name); err != nil {
		return nil, err
	}
	empty, err := e.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	small, err := withSecrets(ctx, e, e.Small)
	if err != nil {
		return nil, err
	}
	large, err := withSecrets(ctx, e, e.Large)
	if err != nil {
		return nil, err
	}
	return []figure.Figure{
		{Name: "nothing in the cluster", Unit: figure.Megabytes, Value: empty},
		{
			Name: fmt.Sprintf("%d Secrets of %d bytes come", e.Secrets, e.Large), Unit: figure.Megabytes,
			Value: large.came, Floor: small.came, Budget: figure.AtMost(45),
			Note: fmt.Sprintf("created as kubectl apply does; the floor is the same with Secrets of %d bytes", e.Small),
		},
		{
			Name: fmt.Sprintf("%d Secrets of %d bytes are there", e.Secrets, e.Large), Unit: figure.Megabytes,
			Value: large.there, Floor: small.there, Budget: figure.AtMost(45), Note: "after a start; the floor as above",
		},
		{
			Name: "payload size: larger over smaller", Unit: figure.Megabytes,
			Value: max(large.came, large.there), Floor: max(small.came, small.there), Budget: figure.Times(1.15),
		},
	}, nil
}

// held is the memory in megabytes when Secrets came while pod-reloader was running, and after it was started beside them.
type held struct{ came, there float64 }

// withSecrets creates Secrets with a payload and deletes them in the end.
func withSecrets(ctx context.Context, e *environment, payload int) (held, error) {
	if err := applySecrets(ctx, e, payload); err != nil {
		return held{}, err
	}
	came, err := e.residentMemory(ctx)
	if err != nil {
		return held{}, err
	}
	if err := e.installation.RestartAll(ctx); err != nil {
		return held{}, err
	}
	there, err := e.residentMemory(ctx)
	if err != nil {
		return held{}, err
	}
	err = e.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(e.name))
	if err != nil {
		return held{}, fmt.Errorf("delete the Secrets: %w", err)
	}
	return held{came, there}, nil
}

// applySecrets creates the Secrets as kubectl apply does: with its annotation, which has the whole payload once more.
func applySecrets(ctx context.Context, e *environment, payload int) error {
	data := map[string][]byte{"payload": []byte(strings.Repeat("s", payload))}
	return parallel(ctx, e.Secrets, func(ctx context.Context, n int) error {
		object := &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: numbered("secret", n)}, Data: data,
		}
		applied, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode a Secret: %w", err)
		}
		object.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)}
		if err := e.Create(ctx, object, client.FieldOwner("kubectl-client-side-apply")); err != nil {
			return fmt.Errorf("create Secret %s: %w", object.Name, err)
		}
		return nil
	})
}
