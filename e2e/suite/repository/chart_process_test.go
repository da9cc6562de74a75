package repository

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The arguments and the environment of the program, and the time that its pod has to stop.
func TestChartRefusesSettingsOfTheProcess(t *testing.T) {
	t.Parallel()
	requireRefusals(t, map[string]refusal{
		"GracePeriodOfTheProgram": {
			reason: "the kubelet would kill it while it serves",
			values: []string{"args={--shutdown-grace-period=2m}"},
			want:   "args has --shutdown-grace-period=2m, and the kubelet kills the pod after terminationGracePeriodSeconds=45: set that to 130 at least",
		},
		"GracePeriodInTwoUnits": {
			reason: "the same in another spelling",
			values: []string{"args={--shutdown-grace-period=1m30s}"},
			want:   "args has --shutdown-grace-period=1m30s, and the kubelet kills the pod after terminationGracePeriodSeconds=45: set that to 100 at least",
		},
		"GracePeriodInTwoArguments": {
			reason: "the same, with the value in the next item",
			values: []string{"args={--shutdown-grace-period,40s,--settle=2s}"},
			want:   "args has --shutdown-grace-period=40s, and the kubelet kills the pod after terminationGracePeriodSeconds=45: set that to 50 at least",
		},
		"GracePeriodInFractions": {
			reason: "the chart does not calculate with fractions",
			values: []string{"args={--shutdown-grace-period=1.5m}"},
			want:   "args has --shutdown-grace-period=1.5m, which the chart cannot compare with terminationGracePeriodSeconds: write whole hours, minutes and seconds",
		},
		"GracePeriodWithoutValue": {
			reason: "the program would not start",
			values: []string{"args={--shutdown-grace-period}"},
			want:   "args has --shutdown-grace-period=, which the chart cannot compare",
		},
		"GracePeriodTwice": {
			reason: "the last one counts",
			values: []string{"args={--shutdown-grace-period=5s,--shutdown-grace-period=40s}"},
			want:   "args has --shutdown-grace-period=40s, and the kubelet kills the pod after terminationGracePeriodSeconds=45: set that to 50 at least",
		},
		"GracePeriodAfterAHook": {
			reason: "SIGTERM comes after the hook, and the rest is too short for the grace period",
			values: []string{"lifecycle.preStop.sleep.seconds=30"},
			want:   "lifecycle.preStop.sleep.seconds is 30, and the kubelet kills the pod after terminationGracePeriodSeconds=45: set that to 50 at least",
		},
		"LongerGracePeriodAfterAHook": {
			reason: "each of them fits alone",
			values: []string{"lifecycle.preStop.sleep.seconds=15", "args={--shutdown-grace-period=30s}"},
			want: "args has --shutdown-grace-period=30s and lifecycle.preStop.sleep.seconds is 15, and the kubelet kills the pod after " +
				"terminationGracePeriodSeconds=45: set that to 55 at least",
		},
		"VariableOfTheChart": {
			reason: "the digest key and the lease would be in another namespace",
			values: []string{"env[0].name=POD_NAMESPACE", "env[0].value=a"},
			want:   "env has POD_NAMESPACE, which the chart sets: leave it out",
		},
		"VariableOfTheNamespace": {
			reason: "the webhook and the permissions would be for all namespaces",
			values: []string{"env[0].name=KUBERNETES_NAMESPACE", "env[0].value=a"},
			want:   "env has KUBERNETES_NAMESPACE; set the value namespaces, which other objects of the chart follow as well",
		},
		"VariableOfReloadersDeployment": {
			reason: "DeploymentConfigs would be handled without permissions and without a rule of the webhook",
			values: []string{"env[0].name=RELOADER_DEPLOYMENT_NAME", "env[0].value=a"},
			want:   "env has RELOADER_DEPLOYMENT_NAME; set the value reloader.isOpenshift, which other objects of the chart follow as well",
		},
		"FlagAgainstAValue": {
			reason: "the permissions would be granted, and no CronJob would be run",
			values: []string{"reloader.runCronJobs=true", "args={--run-cronjobs=false}"},
			want:   "args has --run-cronjobs; set the value reloader.runCronJobs",
		},
	})
}

// The pod has the time for the grace period, and for 10 seconds after it.
func TestChartTakesGracePeriodsThatFit(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for args, termination := range map[string]string{
		"{--shutdown-grace-period=35s}": "45", "{--shutdown-grace-period,1m30s}": "100", "{--shutdown-grace-period=1h}": "3610", "{--shutdown-grace-period=010s}": "20",
		"{--shutdown-grace-period=20s},lifecycle.preStop.sleep.seconds=15": "45", "{--shutdown-grace-period=5s},lifecycle.preStop.sleep.seconds=30": "45",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			rendered := template(t, helm, "args="+args, "terminationGracePeriodSeconds="+termination)
			assert.Contains(t, fmt.Sprint(arguments(t, rendered["Deployment pod-reloader/pod-reloader"])), "--shutdown-grace-period")
		})
	}
}

// Without the permissions, the flag avoids an Event for each CronJob that cannot be run.
func TestChartTakesTheFlagThatRunsNoCronJobs(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), "args={--run-cronjobs=false}")
	assert.Contains(t, fmt.Sprint(arguments(t, rendered["Deployment pod-reloader/pod-reloader"])), "--run-cronjobs=false")
}

// A flag can have its value in the next item, which may read like a flag that the chart refuses.
func TestChartTakesValuesThatReadLikeFlags(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), "args={--resources-to-ignore,secrets,--webhook-client-names,config}")
	args := fmt.Sprint(arguments(t, rendered["Deployment pod-reloader/pod-reloader"]))
	assert.Contains(t, args, "--resources-to-ignore secrets --webhook-client-names config")
}
