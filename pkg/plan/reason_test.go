package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	const onCreate, onDelete = "create", "delete"
	job := func(annotations string) string {
		return strings.NewReplacer("apps/v1", "batch/v1", "Deployment", "Job").Replace(deployment(annotations, reads))
	}
	cronJob := func(spec string) string {
		return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: cart, namespace: shop, annotations: {" + auto + "}}\nspec:\n  " + spec +
			"\n  jobTemplate: {spec: {template: {spec: {containers: [{name: cart" + reads + "}}}}\n"
	}
	tests := map[string]struct {
		reason   string
		manifest string
		flags    []string
		adapt    func(*plan.Input)
		want     []string
		// needs are the kinds that need a part of the installation.
		needs []string
	}{
		"auto":             {reason: "Both restart it.", manifest: deployment(auto, reads)},
		"no annotations":   {reason: "Neither looks at it.", manifest: deployment("", reads)},
		"auto-reload-all":  {reason: "Both restart it.", manifest: deployment("", reads), adapt: func(in *plan.Input) { dialect := in.Reloader.Dialect; dialect.AutoReloadAll = true; speak(in, dialect) }},
		"named":            {reason: "Both restart it.", manifest: deployment(`configmap.`+domain+`reload: "app-.*"`, noRefs)},
		"false and a list": {reason: "The list works in Reloader.", manifest: deployment(domain+`auto: "false", configmap.`+domain+`reload: app`, reads), want: []string{"auto-false: configmap/app modified restart nothing"}},
		"alternatives": {
			reason: "^app|none$ matches app-eu in Reloader.", manifest: deployment(`configmap.`+domain+`reload: "app|none"`, noRefs),
			want: []string{"expression: configmap/app-eu modified restart nothing"},
		},
		"invalid expression": {reason: "It is a Problem, and the rest works.", manifest: deployment(`configmap.`+domain+`reload: "(,app"`, noRefs), want: []string{"problem"}},
		"not a boolean":      {reason: "It is a Problem.", manifest: deployment(domain+`auto: "yes"`, reads), want: []string{"problem"}},
		"pull secret": {
			reason: "Reloader does not look at it.", manifest: deployment(auto, noRefs+", imagePullSecrets: [{name: pull}]"),
			want: []string{"reference: secret/pull modified nothing restart"},
		},
		"volume that is not mounted": {
			reason: "Reloader looks for a container that mounts it.", manifest: deployment(auto, noRefs+", volumes: [{name: v, configMap: {name: app}}]"),
			want: []string{"reference: configmap/app modified nothing restart"},
		},
		"mounted volume of an impossible name": {
			reason: "No object can have it.", flags: []string{onCreate},
			manifest: deployment(auto, `, volumeMounts: [{name: v}]}], volumes: [{name: v, secret: {secretName: "\u001b[2J"}}]`),
		},
		"mounted volume": {reason: "Both see it.", manifest: deployment(auto, ", volumeMounts: [{name: v}]}], volumes: [{name: v, configMap: {name: app}}]")},
		"both dialects": {
			reason: "Reloader does not read SAP's lists.", manifest: deployment(`pod-reloader.cs.sap.com/configmaps: "marked,gone", `+auto, reads),
			want: []string{
				"sap-annotations: configmap/gone created nothing restart", "sap-annotations: configmap/marked modified nothing restart",
				"sap-annotations: configmap/marked deleted nothing restart",
			},
		},
		"excluded by a label": {
			reason: "Reloader does not know the label.", manifest: strings.Replace(deployment(auto, reads), "name: cart\n", "name: cart\n  labels: {pod-reloader.cs.sap.com/ignored: \"true\"}\n", 1),
			want: []string{"excluded-label: configmap/app modified restart nothing"},
		},
		"kube-system": {
			reason: "It is left alone.", manifest: strings.Replace(deployment(auto, reads), "namespace: shop", "namespace: kube-system", 1),
			adapt: func(in *plan.Input) { in.Objects["kube-system"] = in.Objects["shop"] },
			want:  []string{"namespace: configmap/app modified restart nothing"},
		},
		"ignored namespace": {
			reason: "By both.", manifest: deployment(auto, reads),
			adapt: func(in *plan.Input) {
				in.Reloader.IgnoredNamespaces, in.Here.Scope = []string{"shop"}, scope.Scope{Ignored: []string{"shop"}}
			},
		},
		"ignored namespace that is named": {
			reason: "Reloader ignores the flag.", manifest: deployment(auto, reads),
			adapt: func(in *plan.Input) {
				in.Reloader.Namespaces, in.Reloader.IgnoredNamespaces = []string{"shop", "dev"}, []string{"shop"}
				in.Here.Scope = scope.Scope{Namespaces: []string{"dev"}, Ignored: []string{"shop"}}
			},
			want: []string{"namespace: configmap/app modified restart nothing"},
		},
		"Job": {reason: "Both create it again.", manifest: job(auto), needs: []string{"Jobs"}},
		"finished Job": {
			reason: "Reloader creates it again.", manifest: job(auto) + "\nstatus: {conditions: [{type: Complete, status: 'True'}]}",
			want: []string{"job: configmap/app modified delete and create again nothing"},
		},
		"finished Job with --rerun-finished-jobs": {
			reason: "Both create it again.", manifest: job(auto) + "\nstatus: {conditions: [{type: Complete, status: 'True'}]}",
			adapt: func(in *plan.Input) { in.Here.RerunFinishedJobs = true }, needs: []string{"Jobs"},
		},
		"CronJob":           {reason: "Both run it.", manifest: cronJob("schedule: x"), needs: []string{"CronJobs"}},
		"suspended CronJob": {reason: "Reloader runs it.", manifest: cronJob("suspend: true"), want: []string{"suspended: configmap/app modified run at once next scheduled run"}},
		"exclusive CronJob": {
			reason: "Reloader runs it beside others.", manifest: cronJob("concurrencyPolicy: Forbid"),
			want:  []string{"concurrency: configmap/app modified run at once run as concurrencyPolicy allows"},
			needs: []string{"CronJobs"},
		},
		"CronJob of both dialects": {
			reason:   "What only our list lets trigger does not run it.",
			manifest: strings.NewReplacer(auto, auto+", pod-reloader.cs.sap.com/configmaps: app", "name: app}", "name: app, optional: true}").Replace(cronJob("schedule: x")),
			want:     []string{"sap-annotations: configmap/app deleted nothing next scheduled run"}, needs: []string{"CronJobs"},
		},
		"DeploymentConfig": {
			reason: "It is no built-in kind.", manifest: strings.NewReplacer("apps/v1", "apps.openshift.io/v1", "Deployment", "DeploymentConfig").Replace(deployment(auto, reads)),
			want: []string{"kind: configmap/app modified restart nothing"},
		},
		"DeploymentConfig that neither handles": {
			reason: "The flags of both are off.", manifest: strings.NewReplacer("apps/v1", "apps.openshift.io/v1", "Deployment", "DeploymentConfig").Replace(deployment(auto, reads)),
			adapt: func(in *plan.Input) { in.Reloader.Kinds = kinds() },
		},
		"kind of --workload-kinds": {
			reason: "Reloader knows no further kinds.", manifest: strings.NewReplacer("apps/v1", "apps.kruise.io/v1alpha1", "Deployment", "CloneSet").Replace(deployment(auto, reads)),
			adapt: func(in *plan.Input) { in.Here.Kinds = kinds().Override(kind("apps.kruise.io", "v1alpha1", "CloneSet")) },
			want:  []string{"kind: configmap/app modified nothing restart"},
		},
		"Rollout": {
			reason:   "Both restart it, in the way that it asks for.",
			manifest: strings.NewReplacer("apps/v1", "argoproj.io/v1alpha1", "Deployment", "Rollout").Replace(deployment(auto+`, `+domain+`rollout-strategy: restart`, reads)),
		},
		"SecretProviderClass": {reason: "Both restart it when it is rotated.", manifest: deployment(auto, ", volumeMounts: [{name: v}]"+mounts), adapt: classes},
		"SecretProviderClass of a driver with another name": {
			reason: "Neither looks at the name of the driver.", adapt: classes,
			manifest: deployment(auto, ", volumeMounts: [{name: v}]"+strings.Replace(mounts, "secrets-store.", "secrets-store-gke.", 1)),
		},
		"SecretProviderClass that is not mounted": {
			reason: "Reloader looks for a container that mounts it.", manifest: deployment(auto, mounts), adapt: classes,
			want: []string{"reference: secretproviderclass/vault modified nothing restart"},
		},
		"SecretProviderClass of an impossible name": {reason: "No object can have it.", manifest: deployment(auto, ", volumeMounts: [{name: v}]"+strings.Replace(mounts, "vault", "My_Vault", 1)), adapt: classes},
		"SecretProviderClass without the flag":      {reason: "Neither watches it.", manifest: deployment(auto, mounts)},
		"list of SecretProviderClasses without the flag": {
			reason: "Neither reads it; that is reported.", manifest: deployment(`secretproviderclass.`+domain+`reload: vault`, mounts), want: []string{"problem"},
		},
		"webhook-url": {
			reason: "Both post; only Reloader also for what no workload depends on.", manifest: deployment(auto, reads),
			adapt: func(in *plan.Input) { in.Reloader.NotifyOnly, in.Here.NotifyOnly = true, true },
			want:  []string{"unnamed-object"},
		},
		"awaited object": {
			reason: "The pods wait for it.", manifest: deployment(auto, strings.Replace(reads, "app", "gone", 1)), flags: []string{onCreate},
			want: []string{"required-created: configmap/gone created restart nothing"},
		},
		"optional object": {reason: "Both restart the pods, which run without it.", manifest: deployment(auto, `, envFrom: [{configMapRef: {name: gone, optional: true}}]}]`), flags: []string{onCreate}},
		"new object of a name with a dot": {
			reason: "It is a name, too.", manifest: deployment(`configmap.`+domain+`reload: "gone.conf"`, noRefs), flags: []string{onCreate},
		},
		"new object of an expression": {
			reason: "Both restart for it.", manifest: deployment(`configmap.`+domain+`reload: "app-.*"`, noRefs), flags: []string{onCreate},
		},
		"new object with a flag of another word": {
			reason: "True is not on in Reloader.", manifest: deployment(`configmap.`+domain+`reload: gone`, noRefs), flags: []string{onCreate},
			adapt: func(in *plan.Input) { in.Reloader.ReloadOnCreate = false },
			want:  []string{"flag-value: configmap/gone created nothing restart"},
		},
		"deleted object with a flag of another word": {
			reason: "True is not on in Reloader.", manifest: deployment(auto, reads), flags: []string{onDelete},
			adapt: func(in *plan.Input) { in.Reloader.ReloadOnDelete, in.Reloader.Variables = false, false },
			want:  []string{"flag-value: configmap/app deleted nothing restart"},
		},
		"new object of the only kind": {
			reason: "Reloader waits for the controller of the other kind.", manifest: deployment(`configmap.`+domain+`reload: gone`, noRefs),
			flags: []string{onCreate}, adapt: func(in *plan.Input) { in.Reloader.OneKind = true },
			want: []string{"resources-to-ignore: configmap/gone created nothing restart"},
		},
		"deleted object of the only kind": {
			reason: "Reloader waits for the controller of the other kind.", manifest: deployment(auto, reads),
			flags: []string{onDelete}, adapt: func(in *plan.Input) { in.Reloader.OneKind, in.Reloader.Variables = true, false },
			want: []string{"resources-to-ignore: configmap/app deleted nothing restart"},
		},
		"deleted object": {
			reason: "Reloader needs the variable of an earlier reload.", manifest: deployment(auto, reads), flags: []string{onDelete},
			want: []string{"deleted: configmap/app deleted nothing restart"},
		},
		"deleted object with its variable": {
			reason: "Both restart.", manifest: deployment(auto, `, env: [{name: STAKATER_APP_CONFIGMAP, value: x}]`+reads), flags: []string{onDelete},
		},
		"deleted object, other strategy": {
			reason: "Both restart.", manifest: deployment(auto, reads), flags: []string{onDelete}, adapt: func(in *plan.Input) { in.Reloader.Variables = false },
		},
		"pause":         {reason: "Both pause.", manifest: deployment(auto+`, deployment.`+domain+`pause-period: 5m`, reads)},
		"endless pause": {reason: "168h is the most.", manifest: deployment(auto+`, deployment.`+domain+`pause-period: 1000h`, reads), want: []string{"pause-period", "problem"}},
		"no pause":      {reason: "Reloader fails there.", manifest: deployment(auto+`, deployment.`+domain+`pause-period: soon`, reads), want: []string{"pause-period", "problem"}},
		"no pause without a reload": {
			reason: "Reloader reads the period when it reloads.", want: []string{"problem"},
			manifest: deployment(domain+`auto: "false", deployment.`+domain+`pause-period: soon`, reads),
		},
		"no pause without a restart by Reloader": {
			reason: "Reloader does not read the period of what it does not restart.", want: []string{"problem", "reference: secret/pull modified nothing restart"},
			manifest: deployment(auto+`, deployment.`+domain+`pause-period: soon`, noRefs+", imagePullSecrets: [{name: pull}]"),
		},
		"no pause without a restart": {
			reason: "Neither pauses what it does not restart.", want: []string{"problem", "unnamed-object"},
			manifest: deployment(auto+`, deployment.`+domain+`pause-period: soon`, reads),
			adapt:    func(in *plan.Input) { in.Reloader.NotifyOnly, in.Here.NotifyOnly = true, true },
		},
		"of the template": {
			reason: "Both read the annotations of the pod template where the workload has none.",
			manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cart, namespace: shop}\nspec:\n  template: {metadata: {annotations: {" + auto +
				"}}, spec: {containers: [{name: cart" + reads + "}}\n",
		},
		"of both": {
			reason: "Those of the template are not read; that is reported.",
			manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cart, namespace: shop, annotations: {" + auto + "}}\nspec:\n  template: {metadata: {annotations: {" +
				`configmap.` + domain + `reload: marked}}, spec: {containers: [{name: cart` + reads + "}}\n",
			want: []string{"problem"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, tc.manifest)
			dialect := in.Reloader.Dialect
			dialect.ReloadOnCreate, dialect.ReloadOnDelete = slices.Contains(tc.flags, onCreate), slices.Contains(tc.flags, onDelete)
			speak(&in, dialect)
			if tc.adapt != nil {
				tc.adapt(&in)
			}
			report := plan.Compare(in)
			assert.Equal(t, tc.want, summary(report), tc.reason)
			var needs []string
			for _, s := range report.Settings {
				needs = append(needs, s.Name)
			}
			assert.Equal(t, tc.needs, needs)
		})
	}
}

// summary has a line for each effect, or for a reason that has none.
func summary(r plan.Report) []string {
	var lines []string
	for _, g := range r.Groups {
		before := len(lines)
		for _, d := range g.Workloads {
			for _, e := range d.Effects {
				lines = append(lines, fmt.Sprintf("%s: %s %s %s %s", g.Reason, e.Object, e.Change, e.Reloader, e.Here))
			}
		}
		if len(lines) == before {
			lines = append(lines, string(g.Reason))
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(strings.Split(a, ":")[0], strings.Split(b, ":")[0]) })
	return lines
}
