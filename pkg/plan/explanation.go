package plan

import "maps"

// Explanation says what both programs do, and what to do about the difference.
type Explanation struct {
	Reloader string `json:"reloader"`
	Here     string `json:"podReloader"`
	Advice   string `json:"advice"`
}

// explanations returns the Explanation of each Reason.
func explanations() map[Reason]Explanation {
	all := aboutWorkloads()
	maps.Copy(all, aboutSelection())
	maps.Copy(all, aboutEvents())
	return all
}

// aboutWorkloads are those of the rules by which a workload is handled.
func aboutWorkloads() map[Reason]Explanation {
	return map[Reason]Explanation{
		byScope: {
			"handles kube-system, and ignores --namespace-selector with --namespaces or KUBERNETES_NAMESPACE; newer versions --namespaces-to-ignore, too",
			"handles kube-system only where --namespaces names it, and applies all flags for namespaces",
			"nothing if that is right; else adapt --namespaces, --namespaces-to-ignore and --namespace-selector",
		},
		byObjectSelector: {
			"handles workloads whatever their labels",
			"leaves out workloads with other labels than those of --object-selector",
			"nothing if that is right; else adapt --object-selector, or the labels of the workload",
		},
		byExcluded: {
			"does not know the labels ignored and disabled of pod-reloader",
			"leaves the workload alone",
			"remove the label from the workload to have it reloaded",
		},
		byKind: {
			"handles the built-in kinds; Rollouts with --is-Argo-Rollouts=true; DeploymentConfigs where the cluster has them, unless --is-openshift is off",
			"handles the built-in kinds, those of --is-Argo-Rollouts and --is-openshift, which are off by default, and those of --workload-kinds",
			"nothing if that is right; else name the kind by its flag and grant the permissions, or leave it out",
		},
		bySecrets: {
			"handles Secrets, unless --resources-to-ignore names them",
			"does not handle Secrets with --secrets=false",
			"nothing if that is right; else remove --secrets=false",
		},
		byJob: {
			"deletes the Job and creates it again, also one that is finished, suspended or made by a CronJob",
			"leaves such a Job alone, and one that only the annotations of SAP's pod-reloader name",
			"nothing; or create finished Jobs again as well with --rerun-finished-jobs",
		},
		bySuspended: {
			"runs a suspended CronJob",
			"gives the new configuration to its next run, when the CronJob is not suspended any more",
			"nothing, unless a run of a suspended CronJob is wanted: then resume it",
		},
		byConcurrency: {
			"runs a CronJob at once whatever its concurrencyPolicy",
			"waits for the active Jobs with Forbid, and replaces them with Replace",
			"nothing, unless you want Jobs to overlap: then set concurrencyPolicy: Allow",
		},
	}
}

// aboutSelection are those of the rules by which objects are selected.
func aboutSelection() map[Reason]Explanation {
	return map[Reason]Explanation{
		byAutoFalse: {
			`lets lists of names, search and the auto of a kind work beside auto: "false"`,
			`takes auto: "false" for everything`,
			"remove the annotation auto, or the others",
		},
		byWholeName: {
			"compares an expression with ^ and $ around its text: of a|b, ^ binds to a and $ to b, so that it matches parts of names",
			"matches whole names",
			"write the expression so that it matches the names that are meant",
		},
		byRejected: {
			"accepts the item of the list",
			"does not accept it: it is too long, too large, or matches no possible name",
			"write a shorter list or expression",
		},
		byLimit: {
			"has no limit",
			"tracks 1000 objects of a workload, those that the pods need first",
			"narrow the expressions, or use auto or search",
		},
		byReferences: {
			"does not look everywhere in a pod spec: not at imagePullSecrets, credentials of volume drivers, and volumes that no container mounts",
			"looks at every place in which a pod spec can name a ConfigMap or a Secret",
			"nothing, or exclude the object with the annotation for that",
		},
		bySAP: {
			"does not read the annotations configmaps and secrets of pod-reloader",
			"tracks the objects that they list, too (Secrets not with --secrets=false); creation and deletion count there",
			"remove those annotations if they are left over",
		},
	}
}

// aboutEvents are the others.
func aboutEvents() map[Reason]Explanation {
	return map[Reason]Explanation{
		bySwitch: {
			"takes only the word true for on in --reload-on-create and --reload-on-delete",
			"takes True and 1 for on as well",
			"write true for on, or false for off",
		},
		byOneKind: {
			"processes no created and deleted objects where --resources-to-ignore leaves a kind out, unless --sync-after-restart is on",
			"applies --reload-on-create and --reload-on-delete to the other kind",
			"nothing if that is right; else remove --reload-on-create and --reload-on-delete",
		},
		byRequiredCreated: {
			"restarts the workload when an object is created, also one that its pods wait for",
			"lets the pods start that wait for it",
			"nothing",
		},
		byDeletedVariable: {
			"restarts the workload for a deleted object only where an earlier reload has left a STAKATER_ variable for it",
			"restarts it in each case",
			"nothing",
		},
		byPausePeriod: {
			"accepts every duration, and fails at one that it cannot read: the workloads after this one are not reloaded",
			"accepts durations above 0 and up to 168h, reports others, and does not pause for them",
			"correct the annotation",
		},
		byPaused: {
			"has not ended the pause of the Deployment: it still runs, or Reloader was restarted in the pause",
			"ends the pause at its start: what has changed in the pod template since then rolls out",
			"resume the Deployment when it suits you, or remove the annotation with the time to keep it paused",
		},
		byUnnamedObject: {
			"posts each change of these objects to --webhook-url",
			"posts what changed for which workload; no workload depends on these",
			"nothing, or annotate the workloads that you want to be reported",
		},
		byProblem: {
			"ignores what it cannot read, or logs it",
			"reports it, as a warning on each write and as a Warning Event; the rest works",
			"as the text says",
		},
	}
}
