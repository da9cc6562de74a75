package check

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// brokenStage keeps KWOK from starting pods with the image that act cannot start: it has a weight, so that it goes before
// the stage that starts pods, and does nothing for a day.
const brokenStage = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-broken}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.spec.containers[].image', operator: In, values: ['example.com/broken:1']}
  weight: 1
  delay: {durationMilliseconds: 86400000}
  next: {}
`

// endlessStage keeps KWOK from completing the pods of Jobs that act lets run until they are deleted.
const endlessStage = `
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-endless}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {example.com/endless: "true"}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
  weight: 1
  delay: {durationMilliseconds: 86400000}
  next: {}
`

// withModelsNodes returns the options of a control plane that has as many nodes as the model, and whose pods do not start
// with a broken image, nor finish where they are endless.
func withModelsNodes(dir string) (controlplane.Options, error) {
	stages := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(stages, []byte(brokenStage+endlessStage), 0o600); err != nil {
		return controlplane.Options{}, fmt.Errorf("write a stage for KWOK: %w", err)
	}
	return controlplane.Options{Nodes: 2, Args: map[string][]string{controlplane.KWOK: {"--config=" + stages}}}, nil
}
