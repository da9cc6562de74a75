package options

import "github.com/spf13/pflag"

// serverFlags are those about the listeners besides the webhook's.
type serverFlags struct {
	set                                        *pflag.FlagSet
	metricsAddress, probeAddress, pprofAddress string
	metricsSecure, pprof                       bool
}

func (f *serverFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8080",
		"`address` of /metrics, /healthz, /live and /readyz; 0: off; in a pod of Reloader's chart :9090, which it probes")
	set.StringVar(&f.metricsAddress, "metrics-addr", f.metricsAddress, "Reloader's name for --metrics-bind-address: the `address` of the metrics")
	set.BoolVar(&f.metricsSecure, "metrics-secure", false, "serve metrics by TLS, only to users who may get the non-resource URL /metrics")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0: off")
	set.StringVar(&f.probeAddress, "health-addr", f.probeAddress, "Reloader's name for --health-probe-bind-address: the `address` of the probes")
	set.BoolVar(&f.pprof, "enable-pprof", false, "serve profiles at --pprof-addr")
	set.StringVar(&f.pprofAddress, "pprof-addr", "127.0.0.1:6060", "`address` of /debug/pprof")
}

func (f *serverFlags) complete(p *problems, env Environment) Servers {
	if env.Getenv(reloaderDeployment) != "" && !f.set.Changed("metrics-bind-address") && !f.set.Changed("metrics-addr") {
		f.metricsAddress = reloaderMetrics
	}
	s := Servers{
		MetricsAddress: p.optionalAddress("metrics-bind-address", f.metricsAddress),
		MetricsSecure:  f.metricsSecure,
		ProbeAddress:   p.optionalAddress("health-probe-bind-address", f.probeAddress),
		PprofAddress:   "0",
	}
	if f.pprof {
		s.PprofAddress = p.address("pprof-addr", f.pprofAddress)
	}
	return s
}
