package options_test

import (
	"bytes"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// in is an environment in which POD_NAMESPACE is set.
func in(namespace string) options.Environment {
	return options.Environment{
		Getenv: func(key string) string {
			if key == "POD_NAMESPACE" {
				return namespace
			}
			return ""
		},
		ServiceAccountNamespace: "testdata/none",
	}
}

func complete(t *testing.T, args ...string) options.Options {
	t.Helper()
	flags := options.NewFlags()
	require.NoError(t, flags.Parse(args))
	o, err := flags.Complete(in("tools"))
	require.NoError(t, err)
	return o
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := complete(t)
	assert.Equal(t, "tools", o.Namespace)
	assert.Equal(t, "pod-reloader-digest-key", o.DigestKeySecret)
	assert.Equal(t, options.Servers{MetricsAddress: ":8080", ProbeAddress: ":8081", PprofAddress: "0"}, o.Servers)
	assert.Equal(t, options.Webhook{
		Enabled: true, Address: ":9443", MinTLSVersion: tls.VersionTLS13, HTTP2: true,
		Directory: o.Webhook.Directory, Certificate: o.Webhook.Certificate,
	}, o.Webhook)
	assert.True(t, strings.HasSuffix(o.Webhook.Directory, "/k8s-webhook-server/serving-certs"), "where controller-runtime looks, too")
	assert.Equal(t, options.Election{Namespace: "tools", Lease: "pod-reloader", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second}, o.Election)
	assert.Zero(t, o.MemoryLimit)
	assert.Equal(t, options.Reload{Settle: time.Second, SettleMax: 5 * time.Second, Refractory: 5 * time.Second, Workers: 16, Strategy: annotation.ConfigHash}, o.Reload)
	assert.Equal(t, 10*time.Second, o.ShutdownGracePeriod)
	assert.Len(t, o.Selection.Kinds.All(), 5)
	assert.True(t, o.Selection.Scope.Object("app", nil), "no config object is excluded")
}

func TestFlags(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		got  func(options.Options) any
		want any
		why  string
	}{
		"one dash":           {[]string{"-metrics-bind-address", ":1", "-leader-elect"}, func(o options.Options) any { return []any{o.Servers.MetricsAddress, o.Election.Enabled} }, []any{":1", true}, "SAP's pod-reloader takes Go's own flags"},
		"bool with value":    {[]string{"--webhook=false"}, func(o options.Options) any { return o.Webhook.Enabled }, false, "direct mode"},
		"metrics off":        {[]string{"--metrics-bind-address=0"}, func(o options.Options) any { return o.Servers.MetricsAddress }, "0", "as in controller-runtime"},
		"metrics off, empty": {[]string{"--metrics-bind-address="}, func(o options.Options) any { return o.Servers.MetricsAddress }, "0", "as in controller-runtime"},
		"namespaces":         {[]string{"--namespaces=a, b,a", "--namespaces", "c"}, func(o options.Options) any { return o.Selection.Scope.Namespaces }, []string{"a", "b", "c"}, "comma-separated or repeated"},
		"selector":           {[]string{"--object-selector=tier in (web)"}, func(o options.Options) any { return o.Selection.Scope.Object("a", map[string]string{"tier": "web"}) }, true, "set-based selectors work"},
		"election":           {[]string{"--leader-election-lease-duration=60s", "--leader-election-renew-deadline=40s", "--leader-election-retry-period=5s"}, func(o options.Options) any { return o.Election }, options.Election{Namespace: "tools", Lease: "pod-reloader", LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second}, "Reloader has the same names"},
		"kinds":              {[]string{"--workload-kinds=x.io/v1/Y=spec.template,x.io/v1/Z=spec.pod"}, func(o options.Options) any { return len(o.Selection.Kinds.All()) }, 7, "beside the built-in ones"},
		"configuration":      {[]string{"--config=configmap:pod-reloader/config"}, func(o options.Options) any { return o.Selection.Configuration }, configuration.Location{Namespace: "pod-reloader", Name: "config"}, "in a ConfigMap"},
		"a file":             {[]string{"--config", "/etc/config.yaml"}, func(o options.Options) any { return o.Selection.Configuration }, configuration.Location{Path: "/etc/config.yaml"}, "whether it is there or not"},
		"no configuration":   {nil, func(o options.Options) any { return o.Selection.Configuration.IsZero() }, true, "it is not needed"},
		"prefix":             {[]string{"--annotation-prefix=example.org"}, func(o options.Options) any { return o.Selection.Keys.Secrets }, "example.org/secrets", "with or without slash"},
		"revision":           {[]string{"--hash=revision"}, func(o options.Options) any { return o.Reload.Revision }, true, "SAP's digest"},
		"missing required":   {[]string{"--missing-required=reload"}, func(o options.Options) any { return o.Reload.ReloadMissingRequired }, true, "it is set"},
		"gates off":          {[]string{"--settle=0", "--refractory=0s"}, func(o options.Options) any { return o.Reload.Settle + o.Reload.Refractory }, time.Duration(0), "0 switches a gate off"},
		"TLS 1.2":            {[]string{"--tls-min-version=1.2"}, func(o options.Options) any { return o.Webhook.MinTLSVersion }, uint16(tls.VersionTLS12), "for an old API server"},
		"HTTP/1.1":           {[]string{"--enable-http2=false"}, func(o options.Options) any { return o.Webhook.HTTP2 }, false, "off by flag"},
		"no runs":            {[]string{"--run-cronjobs=false"}, func(o options.Options) any { return o.Reload.WithoutRuns }, true, "the permissions decide by default"},
		"runs after all":     {[]string{"--run-cronjobs=false", "--run-cronjobs"}, func(o options.Options) any { return o.Reload.WithoutRuns }, false, "the last one counts: the components of both permissions have one each"},
		"without Secrets":    {[]string{"--secrets=false", "--resources-to-ignore=secrets"}, func(o options.Options) any { return []any{o.Selection.WithoutSecrets, o.Selection.Stakater.Without} }, []any{true, []reference.Kind{reference.Secret}}, "in both dialects"},
		"client CA":          {[]string{"--webhook-client-ca=/ca.crt", "--webhook-client-names=a,b"}, func(o options.Options) any { return []any{o.Webhook.ClientCA, o.Webhook.ClientNames} }, []any{"/ca.crt", []string{"a", "b"}}, "who may call the webhook"},
		"client names":       {[]string{"--webhook-client-ca=/ca.crt", "--webhook-client-names=a, b ,"}, func(o options.Options) any { return o.Webhook.ClientNames }, []string{"a", "b"}, "spaces are not part of a name"},
		"profiles":           {[]string{"--enable-pprof"}, func(o options.Options) any { return o.Servers.PprofAddress }, "127.0.0.1:6060", "never by default"},
		"lease elsewhere":    {[]string{"--leader-election-namespace=leases"}, func(o options.Options) any { return o.Election.Namespace }, "leases", "as in SAP's pod-reloader"},
		"namespace":          {[]string{"--namespace=mine"}, func(o options.Options) any { return o.Namespace }, "mine", "a flag goes before the environment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tt.got(complete(t, tt.args...)), tt.why)
		})
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want []string
	}{
		"unknown":             {[]string{"--bogus", "x"}, []string{"--bogus: unknown flag"}},
		"misspelled":          {[]string{"--leader-elec"}, []string{"did you mean --leader-elect?"}},
		"argument":            {[]string{"start"}, []string{`unexpected argument "start"; a flag takes its value as --flag=value`}},
		"value of a boolean":  {[]string{"--leader-elect", "True"}, []string{`unexpected argument "True"; a flag takes its value as --flag=value`}},
		"dashes only":         {[]string{"--"}, []string{`unexpected argument "--"`}},
		"value missing":       {[]string{"--settle"}, []string{"--settle: a value is missing"}},
		"duration":            {[]string{"--settle=soon"}, []string{`--settle: "soon"`}},
		"negative":            {[]string{"--refractory=-1s"}, []string{"--refractory: -1s: must not be negative"}},
		"settle over its max": {[]string{"--settle=1m"}, []string{"--settle: 1m0s is longer than --settle-max 5s"}},
		"bool":                {[]string{"--webhook=maybe"}, []string{`--webhook: "maybe"`}},
		"hash":                {[]string{"--hash=md5"}, []string{`--hash: "md5": want content or revision`}},
		"missing required":    {[]string{"--missing-required=maybe"}, []string{"--missing-required"}},
		"TLS":                 {[]string{"--tls-min-version=1.1"}, []string{"--tls-min-version"}},
		"address":             {[]string{"--webhook-bind-address=9443"}, []string{`--webhook-bind-address: "9443": want host:port or :port`}},
		"port":                {[]string{"--health-probe-bind-address=:http"}, []string{`"http" is not a port number`}},
		"port range":          {[]string{"--enable-pprof", "--pprof-addr=:70000"}, []string{"--pprof-addr"}},
		"names without a CA":  {[]string{"--webhook-client-names=a"}, []string{"--webhook-client-names: needs --webhook-client-ca"}},
		"empty CA":            {[]string{"--webhook-client-ca="}, []string{"--webhook-client-ca: the path is empty: name the file"}},
		"empty names":         {[]string{"--webhook-client-ca=ca.crt", "--webhook-client-names=,"}, []string{"--webhook-client-names: it has no name: name the callers"}},
		"empty namespaces":    {[]string{"--namespaces="}, []string{"--namespaces: it has no namespace: name some"}},
		"only commas":         {[]string{"--namespaces=, ,"}, []string{"--namespaces: it has no namespace: name some"}},
		"CA, direct mode":     {[]string{"--webhook=false", "--webhook-client-ca=ca.crt"}, []string{"--webhook-client-ca: has no effect with --webhook=false"}},
		"mode, direct mode":   {[]string{"--webhook=false", "--certificate-mode=self-managed"}, []string{"--certificate-mode: has no effect with --webhook=false"}},
		"files, self-managed": {[]string{"--webhook-tls-directory=tls", "--certificate-mode=self-managed"}, []string{"--webhook-tls-directory: has no effect with --certificate-mode=self-managed"}},
		"selector":            {[]string{"--namespace-selector=a in"}, []string{"--namespace-selector"}},
		"namespaces":          {[]string{"--namespaces=A_b,ok"}, []string{`--namespaces: "A_b" is not a valid namespace name`}},
		"kinds":               {[]string{"--workload-kinds=Deployment"}, []string{"--workload-kinds"}},
		"kind that is built in": {
			[]string{"--workload-kinds=batch/v1/CronJob=spec.template"},
			[]string{`--workload-kinds: "batch/v1/CronJob=spec.template": the kind is there already, as batch/v1/CronJob=spec.jobTemplate.spec.template: leave one out`},
		},
		"kind that is ignored":       {[]string{"--ignored-workload-types=jobs", "--workload-kinds=batch/v1/Job=spec.foo"}, []string{"as batch/v1/Job=spec.template"}},
		"kind in two versions":       {[]string{"--workload-kinds=a.io/v1/A=spec.t,a.io/v2/A=spec.t"}, []string{"as a.io/v1/A=spec.t"}},
		"kind of another flag":       {[]string{"--is-Argo-Rollouts", "--workload-kinds=argoproj.io/v1alpha1/Rollout=spec.t"}, []string{"--workload-kinds"}},
		"configuration":              {[]string{"--config=configmap:pod-reloader"}, []string{`--config: "configmap:pod-reloader": want configmap:NAMESPACE/NAME`}},
		"configuration names":        {[]string{"--config=configmap:A/B"}, []string{`--config: "A" is not a valid namespace name`}},
		"prefix":                     {[]string{"--annotation-prefix=a b"}, []string{"--annotation-prefix"}},
		"digest key":                 {[]string{"--digest-key-secret=A"}, []string{"--digest-key-secret"}},
		"workers":                    {[]string{"--workers=0"}, []string{"--workers: 0: at least 1"}},
		"zap":                        {[]string{"--zap-encoder=xml"}, []string{"--zap-encoder"}},
		"lease":                      {[]string{"--leader-election-namespace=A"}, []string{"--leader-election-namespace"}},
		"lease, deadline":            {[]string{"--leader-election-renew-deadline=15s"}, []string{"--leader-election-lease-duration: 15s: want whole seconds, as a Lease has them, and more than --leader-election-renew-deadline, which is 15s"}},
		"lease, fraction":            {[]string{"--leader-election-lease-duration=10500ms"}, []string{"--leader-election-lease-duration: 10.5s: want whole seconds"}},
		"deadline, retry":            {[]string{"--leader-election-retry-period=9s"}, []string{"--leader-election-renew-deadline: 10s: want more than 1.2 times --leader-election-retry-period, which is 9s"}},
		"retry":                      {[]string{"--leader-election-retry-period=0"}, []string{"--leader-election-retry-period: 0s: want more than 0"}},
		"all that is wrong":          {[]string{"--bogus", "--settle=soon", "--hash=md5", "--workers=x", "--tls-min-version=1"}, []string{"--bogus", "--settle", "--hash", "--workers", "--tls-min-version"}},
		"wrong beside a right value": {[]string{"--settle", "--hash", "--hash=md5"}, []string{`--settle: "--hash"`, `--hash: "md5"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := options.NewFlags()
			parsed := flags.Parse(tt.args)
			_, completed := flags.Complete(in("tools"))
			text := ""
			for _, err := range []error{parsed, completed} {
				if err != nil {
					text += err.Error() + "\n"
				}
			}
			for _, want := range tt.want {
				assert.Contains(t, text, want)
			}
			assert.Len(t, strings.Split(strings.TrimSpace(text), "\n"), len(tt.want), "one line a problem: %s", text)
		})
	}
}

// An installation may name a kind that a flag has come to add.
func TestKindsMayBeRepeated(t *testing.T) {
	t.Parallel()
	once := kindsOf(complete(t, "--is-Argo-Rollouts"))
	assert.Equal(t, once, kindsOf(complete(t, "--is-Argo-Rollouts", "--workload-kinds=argoproj.io/v1alpha1/Rollout=spec.template, batch/v1/Job=spec.template")))
	jobs := complete(t, "--workload-kinds=batch/v1/Job=spec.template,batch.volcano.sh/v1alpha1/Job=spec.t", "--ignored-workload-types=jobs")
	assert.NotContains(t, kindsOf(jobs), "batch/v1/Job=spec.template")
	assert.Contains(t, kindsOf(jobs), "batch.volcano.sh/v1alpha1/Job=spec.t", "another group")
}

func TestPod(t *testing.T) {
	t.Parallel()
	environment := in("tools")
	environment.Getenv = func(key string) string { return "the " + key }
	o, err := options.NewFlags().Complete(environment)
	require.Error(t, err, "that is no namespace")
	assert.Equal(t, options.Pod{Namespace: "the POD_NAMESPACE", Name: "the POD_NAME", UID: "the POD_UID"}, o.Pod, "as the downward API fills it in")
	assert.Empty(t, complete(t).Pod.Name, "outside of a cluster there is none")
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"-h", "--help", "-help"} {
		assert.ErrorIs(t, options.NewFlags().Parse([]string{"--settle=1s", arg}), pflag.ErrHelp)
	}
}

func TestOwnNamespace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "namespace")
	require.NoError(t, os.WriteFile(file, []byte("from-account\n"), 0o600))
	nothing := in("")

	account := nothing
	account.ServiceAccountNamespace = file
	o, err := options.NewFlags().Complete(account)
	require.NoError(t, err)
	assert.Equal(t, "from-account", o.Namespace)
	assert.Equal(t, "from-account", o.Election.Namespace, "the lease is in the same one")

	for name, tc := range map[string]struct {
		account string
		want    string
	}{
		"outside of a cluster, Reloader's own namespace is the one that it handles": {nothing.ServiceAccountNamespace, "only"},
		"inside, the service account says it":                                       {file, "from-account"},
	} {
		o, err := options.NewFlags().Complete(options.Environment{ServiceAccountNamespace: tc.account, Getenv: func(variable string) string {
			return map[string]string{"KUBERNETES_NAMESPACE": "only"}[variable]
		}})
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, o.Namespace, name)
		assert.Equal(t, []string{"only"}, o.Selection.Scope.Namespaces, name)
	}

	_, err = options.NewFlags().Complete(nothing)
	assert.ErrorContains(t, err, "--namespace: needed outside of a cluster")
}

func TestEveryFlagIsExplained(t *testing.T) {
	t.Parallel()
	flags := options.NewFlags()
	count := 0
	for _, group := range flags.Groups() {
		assert.NotEmpty(t, group.Title)
		group.Set.VisitAll(func(f *pflag.Flag) {
			count++
			assert.NotEmpty(t, f.Usage, f.Name)
			assert.Same(t, f, flags.All().Lookup(f.Name))
		})
	}
	all := 0
	flags.All().VisitAll(func(*pflag.Flag) { all++ })
	assert.Equal(t, all, count, "each flag is in one group")
}

func TestLogging(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args         []string
		json, detail bool
		why          string
	}{
		"default":      {nil, true, false, "machines read it"},
		"text":         {[]string{"--log-format=text"}, false, false, "people read it"},
		"debug":        {[]string{"--log-level=debug"}, true, true, "more is logged"},
		"number":       {[]string{"--log-level=2"}, true, true, "still more is logged"},
		"zap":          {[]string{"--zap-encoder=console", "--zap-log-level=debug"}, false, true, "SAP's flags"},
		"ours first":   {[]string{"--zap-encoder=console", "--log-format=json", "--zap-log-level=debug", "--log-level=info"}, true, false, "both are given"},
		"development":  {[]string{"--zap-devel"}, false, true, "SAP's flags"},
		"zap and time": {[]string{"--zap-time-encoding=epoch"}, true, false, "SAP's flags"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := complete(t, tt.args...).Logging.Logger(&out)
			log.V(1).Info("detail")
			for range 500 {
				log.Info("happened", "after", 1500*time.Millisecond)
			}
			assert.Equal(t, 500, strings.Count(out.String(), "happened"), "no line is dropped, as each is about another workload")
			assert.Contains(t, out.String(), `"1.5s"`, "a duration has its unit")
			assert.Equal(t, tt.detail, strings.Contains(out.String(), "detail"), tt.why)
			assert.Equal(t, tt.json, strings.HasPrefix(out.String(), "{"), tt.why)
		})
	}
}

// At level 8, client-go logs the bodies of answers: also those of the Secrets with digest keys and certificates.
func TestBodiesOfAnswersAreNotLogged(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--log-level=127", "--log-level=8", "--zap-log-level=20"} {
		var out bytes.Buffer
		logging := complete(t, arg).Logging
		log := logging.Logger(&out)
		log.V(8).Info("Response Body")
		log.V(1).V(7).Info("Response Body")
		assert.Empty(t, out.String(), arg)
		assert.False(t, logging.Enabled(-8), arg)
		log.V(7).Info("detail")
		assert.NotEmpty(t, out.String(), arg)
	}
}

func TestInstallationHasAName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pod, flag, want string }{
		"outside of a cluster":    {"", "", "pod-reloader"},
		"of a Deployment":         {"team-b-reloader-7d9f8b6c5d-x2x4z", "", "team-b-reloader"},
		"of the plain one":        {"pod-reloader-7d9f8b6c5d-x2x4z", "", "pod-reloader"},
		"of something else":       {"reloader-0", "", "pod-reloader"},
		"of a short name":         {"a-x2x4z", "", "pod-reloader"},
		"the flag says otherwise": {"pod-reloader-7d9f8b6c5d-x2x4z", "mine", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environment := in("tools")
			getenv := environment.Getenv
			environment.Getenv = func(key string) string {
				if key == "POD_NAME" {
					return c.pod
				}
				return getenv(key)
			}
			flags := options.NewFlags()
			require.NoError(t, flags.Parse([]string{"--installation-name=" + c.flag}))
			o, err := flags.Complete(environment)
			require.NoError(t, err)
			assert.Equal(t, c.want, o.Installation)
		})
	}
	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--installation-name=A_B"}))
	_, err := flags.Complete(in("tools"))
	assert.ErrorContains(t, err, "--installation-name: ")
}
