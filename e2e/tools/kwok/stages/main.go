// Command stages prints the stages that KWOK needs to play a kubelet that is always well: nodes
// become and stay ready, pods start, finish (those of Jobs) and go at once.
package main

import (
	"fmt"
	"strings"

	nodeinit "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

func main() {
	fmt.Println(strings.Join([]string{
		nodeinit.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeat,
		pod.DefaultPodReady,
		pod.DefaultPodComplete,
		pod.DefaultPodDelete,
	}, "\n---\n"))
}
