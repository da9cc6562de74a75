package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

const (
	alertFile  = "chart/pod-reloader/files/alerts.yaml"
	alertTests = "e2e/suite/repository/testdata/alerts.yaml"
)

// The engine of Prometheus evaluates each rule on series for which it must fire, and on others for which it must not.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	out, err := run(t.Context(), tool(t, "alerts", "alerts"), filepath.Join(toolchain.RootOf(t), alertTests))
	require.NoError(t, err)
	assert.Regexp(t, `^\d+ expectations are met\n$`, string(out))
}

// The tests of the rules fail where a rule is wrong.
func TestTestsOfAlertsNoticeAWrongRule(t *testing.T) {
	t.Parallel()
	alerts := tool(t, "alerts", "alerts")
	rules, tests := read(t, alertFile), read(t, alertTests)
	for name, change := range map[string]struct{ before, after, want string }{
		"threshold":  {"pod_reloader_oldest_due_reload_age_seconds > 300", "pod_reloader_oldest_due_reload_age_seconds > 30", "PodReloaderReloadsAreLate"},
		"metric":     {"pod_reloader_watch_healthy == 0", "pod_reloader_watch_health == 0", "PodReloaderWatchFails"},
		"annotation": {"{{ $labels.pod }}", "{{ $labels.job }}", "PodReloaderCertificateIsNotTrusted"},
		"template":   {"{{ $labels.pod }}", "{{ $labels.pod", `annotation "summary": template`},
		"expression": {"pod_reloader_watch_healthy == 0", "pod_reloader_watch_healthy = 0", "parse error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, rules, change.before)
			directory := t.TempDir()
			files := map[string]string{
				"rules.yaml": strings.ReplaceAll(rules, change.before, change.after),
				"tests.yaml": strings.Replace(tests, "../../../../"+alertFile, "rules.yaml", 1),
			}
			for file, text := range files {
				require.NoError(t, os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600))
			}
			_, err := run(t.Context(), alerts, filepath.Join(directory, "tests.yaml"))
			assert.ErrorContains(t, err, change.want)
		})
	}
}

// Each installation of the chart has an alert of its own, which series of another installation do not keep from firing.
func TestAbsenceAlertOfTheChartIsAboutItsRelease(t *testing.T) {
	t.Parallel()
	helm, alerts := tool(t, "helm", "helm"), tool(t, "alerts", "alerts")
	const (
		service, pod = "metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true"
		ofService    = `namespace: pod-reloader, job: pod-reloader-metrics, `
		ofPods       = `namespace: pod-reloader, job: pod-reloader/pod-reloader, `
	)
	for name, test := range map[string]struct {
		values        []string
		present, want string
	}{
		"other namespace":    {[]string{service}, `namespace="other", job="pod-reloader-metrics"`, ofService},
		"other release":      {[]string{service}, `namespace="pod-reloader", job="second-metrics"`, ofService},
		"itself":             {[]string{service}, `namespace="pod-reloader", job="pod-reloader-metrics"`, ""},
		"PodMonitor, other":  {[]string{pod}, `namespace="pod-reloader", job="pod-reloader/second"`, ofPods},
		"PodMonitor, itself": {[]string{pod}, `namespace="pod-reloader", job="pod-reloader/pod-reloader"`, ""},
		"PodMonitor elsewhere": {
			[]string{pod, "metrics.podMonitor.namespace=monitoring"}, `namespace="pod-reloader", job="monitoring/pod-reloader"`, "",
		},
		"no monitor": {nil, `namespace="any", job="any"`, ""},
		"another job label": {
			[]string{service, "metrics.serviceMonitor.relabelings[0].targetLabel=job"}, `namespace="pod-reloader", job="any"`, "",
		},
		"another namespace label": {
			[]string{pod, "metrics.podMonitor.metricRelabelings[0].targetLabel=namespace"}, `namespace="any", job="pod-reloader/pod-reloader"`, "",
		},
		"a label for the cluster": {
			[]string{service, "metrics.serviceMonitor.relabelings[0].targetLabel=cluster"},
			`namespace="other", job="pod-reloader-metrics"`, ofService,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := template(t, helm, append(test.values, "metrics.prometheusRule.enabled=true")...)["PrometheusRule pod-reloader/pod-reloader"]
			rules, err := yaml.Marshal(rule["spec"])
			require.NoError(t, err)
			expected := ""
			if test.want != "" {
				expected = fmt.Sprintf(absenceFires, test.want)
			}
			directory := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(directory, "rules.yaml"), rules, 0o600))
			tests := filepath.Join(directory, "tests.yaml")
			require.NoError(t, os.WriteFile(tests, fmt.Appendf(nil, absenceTest, test.present, expected), 0o600))
			_, err = run(t.Context(), alerts, tests)
			assert.NoError(t, err)
		})
	}
}

const (
	absenceTest = `rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'pod_reloader_build_info{%s}'
        values: '1x20'
    alert_rule_test:
      - eval_time: 15m
        alertname: PodReloaderIsAbsent
        exp_alerts: [%s]
`
	absenceFires = `{exp_labels: {%sseverity: warning}, exp_annotations: {summary: ` +
		`"no replica of pod-reloader is scraped: changes of configuration restart nothing until one runs", ` +
		`runbook_url: "https://github.com/pod-reloader/pod-reloader/blob/main/docs/runbook.md#alert-rules"}}`
)

// Only what the runbook calls urgent is critical.
func TestSeverityOfAlertsIsTheUrgencyInTheRunbook(t *testing.T) {
	t.Parallel()
	helm, rows := tool(t, "helm", "helm"), read(t, "docs/runbook.md")
	for policy, urgent := range map[string]*regexp.Regexp{
		"Ignore": regexp.MustCompile("^at once:"),
		"Fail":   regexp.MustCompile("^at once(?::| with `failurePolicy: Fail`)"),
	} {
		rendered := template(t, helm, "metrics.prometheusRule.enabled=true", "webhook.failurePolicy="+policy)
		group, _ := list(field(t, rendered["PrometheusRule pod-reloader/pod-reloader"], "spec", "groups"))[0].(map[string]any)
		for _, r := range list(group["rules"]) {
			alert, _ := r.(map[string]any)
			row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| [^|]*`%s`[^|]* \\| [^|]* \\| (.*) \\|$", alert["alert"])).FindStringSubmatch(rows)
			require.NotNil(t, row, alert["alert"])
			want := "warning"
			if urgent.MatchString(row[1]) {
				want = "critical"
			}
			assert.Equal(t, map[string]any{"severity": want}, alert["labels"], "%s: %s", policy, alert["alert"])
		}
	}
}

// No alert is without a test that it fires, and one that it does not.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, alertFile)), &rules))
	var tests struct {
		Tests []struct {
			Expectations []struct {
				Alertname string
				Alerts    []any `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, alertTests)), &tests))
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, e := range test.Expectations {
			if len(e.Alerts) > 0 {
				fires[e.Alertname] = true
			} else {
				silent[e.Alertname] = true
			}
		}
	}
	require.Len(t, rules.Groups, 1)
	for _, rule := range rules.Groups[0].Rules {
		assert.True(t, fires[rule.Alert], "%s: no test in which it fires", rule.Alert)
		assert.True(t, silent[rule.Alert], "%s: no test in which it does not", rule.Alert)
	}
}

// Each metric that docs/monitoring.md marks with an alert has a rule.
func TestEachMetricMarkedWithAnAlertHasARule(t *testing.T) {
	t.Parallel()
	rules, marked := read(t, alertFile), 0
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`.*$").FindAllStringSubmatch(read(t, "docs/monitoring.md"), -1) {
		if strings.Contains(strings.ToLower(row[0]), "**alert**") {
			marked++
			assert.Contains(t, rules, row[1])
		}
	}
	assert.Greater(t, marked, 10)
}
