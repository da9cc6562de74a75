package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestCleanCountsInWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "3 workloads; changes the pod templates of 2, with 4 pods", summary(3, 2, 4))
	assert.Equal(t, "1 workload; changes the pod templates of 1, with 1 pod", summary(1, 1, 1))
	assert.Equal(t, "1 workload; changes no pod template", summary(1, 0, 0))
	for status, want := range map[int64]string{0: "it has no pods to restart", 1: "restarts 1 pod", 2: "restarts 2 pods"} {
		object := workload.Object{Raw: map[string]any{"status": map[string]any{"replicas": status}}}
		assert.Equal(t, want, leftover{object: object}.effect())
	}
}
