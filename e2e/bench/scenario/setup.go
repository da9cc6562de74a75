package scenario

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// setup is a control plane with an installation.
type setup int

const (
	// bare has the API server alone and no gates, for durations: what controllers and pods make of a new template is in
	// neither figure nor floor, nor is what the audit log costs a read.
	bare setup = iota
	// complete has everything, with pod-reloader as shipped, for counts.
	complete
	// loaded is another of that kind, for counts of many changes: those of complete take as long.
	loaded
	// disturbed is another of that kind, in which replicas and the API server end.
	disturbed
	// bulk is like bare, with pod-reloader as shipped but a single replica, for amounts.
	bulk
	// empty has the API server alone, without pod-reloader, for the library that it is built with.
	empty

	setups = iota
)

func (s setup) options() (controlplane.Options, installation.Options) {
	alone := controlplane.Options{Without: []string{controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK}}
	// A replica serves admission for this time after SIGTERM, for the sake of the endpoint. Here it is known at once.
	quickly := "--shutdown-grace-period=300ms"
	switch s {
	case bare:
		alone.Audit.WithoutReads = true
		return alone, installation.Options{Args: []string{"--settle=0s", "--refractory=0s", quickly}}
	case empty:
		return alone, installation.Options{}
	case bulk:
		return alone, installation.Options{Replicas: 1, Args: []string{quickly}}
	default:
		return controlplane.Options{}, installation.Options{Args: []string{quickly}}
	}
}

// atOnce returns the options for a run of all setups at the same time: counts depend on writes that are made within the settle time, and on
// a webhook that answers in time, which then needs more of it than as shipped. A leader that cannot renew its lease ends.
func (s setup) atOnce(options installation.Options) installation.Options {
	options.Patient = s != disturbed // where replicas end, a write would wait for one
	options.LongLease = s != disturbed
	if s == complete || s == loaded {
		options.Args = append(options.Args, "--settle=3s", "--settle-max=15s")
	}
	return options
}

// start starts the control plane and the installation of a setup.
func (b Bench) start(ctx context.Context, setup setup) (*environment, error) {
	forControlPlane, forInstallation := setup.options()
	if b.AtOnce {
		forInstallation = setup.atOnce(forInstallation)
	}
	if b.Profiles != "" {
		forControlPlane.Args = map[string][]string{controlplane.APIServer: {"--profiling=true"}}
	}
	cp, err := controlplane.Start(ctx, forControlPlane)
	if err != nil {
		return nil, err
	}
	e := &environment{Client: cp.Client(), Sizes: b.Sizes, progress: b.Progress, cp: cp, profiler: profiler{cp: cp, directory: b.Profiles}}
	if setup == empty {
		return e, nil
	}
	if setup == complete {
		if e.proxy, err = controlplane.NewProxy(cp.Address()); err != nil {
			return nil, errors.Join(err, e.close())
		}
		forInstallation.Connect = func(config *rest.Config) { config.Host = "https://" + e.proxy.Addr() }
	}
	if e.profiler.enabled() {
		args, err := e.profiler.args()
		if err != nil {
			return nil, errors.Join(err, e.close())
		}
		forInstallation.Replicas = 1
		forInstallation.Args = append(forInstallation.Args, args...)
	}
	if e.installation, err = installation.Start(ctx, cp, forInstallation); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}
