// Command kubernetes is kube-apiserver, kube-controller-manager and kube-scheduler in one
// executable, so that a cold machine links once instead of three times. Like busybox it is whatever
// it is called by: the name in argv[0] picks the component.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	command := newCommand(filepath.Base(os.Args[0]))
	if command == nil {
		fmt.Fprintln(os.Stderr, "call me kube-apiserver, kube-controller-manager or kube-scheduler (argv[0])")
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}

func newCommand(component string) *cobra.Command {
	switch component {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	default:
		return nil
	}
}
