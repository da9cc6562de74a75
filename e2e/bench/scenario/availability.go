package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// availability: users write all the time while replicas come and go. Their writes and the reloads are counted.
func availability(ctx context.Context, e *environment) ([]figure.Figure, error) {
	// The Service takes a replica out later than that replica knows that it ends.
	e.installation.Balancer().SetEndpointDelay(time.Second)
	defer e.installation.Balancer().SetEndpointDelay(0)
	return e.withArgs(ctx, []string{"--shutdown-grace-period=3s"}, disruptions{e}.run)
}

// event is something that must disturb no user and lose no reload.
type event struct {
	name string
	// policy is the webhook's failurePolicy meanwhile.
	policy admissionv1.FailurePolicyType
	// do returns when the event is over.
	do func(ctx context.Context) (outcome, error)
	// handover is the most that it may take until another replica leads; 0 if it is not measured.
	handover time.Duration
	// crash says that a replica ends without notice: calls to it fail until its endpoint is removed.
	crash bool
	// outage says that users cannot write meanwhile.
	outage bool
}

// outcome is what an event has to report.
type outcome struct {
	// handover is the time until another replica led.
	handover time.Duration
	// routed is when the last new connection could go to the replica that ended; zero unless it crashed.
	routed time.Time
}

// takeover is the most time until another replica leads after a crash: the lease lasts 15 s, and is tried for every 2 s.
const takeover = 20 * time.Second

// disruptions makes the events happen.
type disruptions struct{ *environment }

func (d disruptions) events() []event {
	return []event{
		{name: "rolling update, failurePolicy Fail", policy: admissionv1.Fail, do: d.rollingUpdate},
		{name: "leader stopped, failurePolicy Fail", policy: admissionv1.Fail, do: d.signalLeader(syscall.SIGTERM), handover: 3 * time.Second},
		{name: "leader killed", policy: admissionv1.Ignore, do: d.killLeader, handover: takeover},
		{name: "leader killed, failurePolicy Fail", policy: admissionv1.Fail, do: d.killLeader, handover: takeover, crash: true},
		{name: "leader frozen", policy: admissionv1.Ignore, do: d.signalLeader(syscall.SIGSTOP), handover: takeover},
		{name: "standby killed", policy: admissionv1.Ignore, do: d.killStandby},
		{name: "standby killed, failurePolicy Fail", policy: admissionv1.Fail, do: d.killStandby, crash: true},
		{name: "API server restarted", policy: admissionv1.Ignore, do: d.restartAPIServer, outage: true},
	}
}

// reloaded is how many workloads depend on a ConfigMap that is changed during each event, writers how many users write others.
const reloaded, writers = 10, 8

// run lets all events happen, one after the other.
func (d disruptions) run(ctx context.Context) ([]figure.Figure, error) {
	err := parallel(ctx, reloaded, func(ctx context.Context, i int) error {
		config := []string{numbered("config", i)}
		if _, err := d.deployWithConfig(ctx, deployment{name: numbered("ours", i), configMaps: config}); err != nil {
			return err
		}
		_, err := d.deploy(ctx, deployment{name: numbered("users", i), configMaps: config})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := d.awaitSettled(ctx); err != nil {
		return nil, err
	}
	var figures []figure.Figure
	events := slices.DeleteFunc(d.events(), func(ev event) bool { return ev.handover == takeover && !d.Crashes })
	for n, ev := range events {
		found, err := d.during(ctx, ev, n+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ev.name, err)
		}
		figures = append(figures, found...)
	}
	return figures, nil
}

// during lets an event happen while users write, right after a change of the configuration, and counts.
func (d disruptions) during(ctx context.Context, ev event, round int) ([]figure.Figure, error) {
	if err := d.setFailurePolicy(ctx, ev.policy); err != nil {
		return nil, err
	}
	users := d.startUsers(ctx, ev.outage)
	err := parallel(ctx, reloaded, func(ctx context.Context, i int) error { return d.change(ctx, numbered("config", i), round) })
	var out outcome
	if err == nil {
		out, err = ev.do(ctx)
	}
	written, failures, stopped := users.end(ctx, d.Writes)
	if err := errors.Join(err, stopped, d.installation.StartAll(ctx)); err != nil {
		return nil, err
	}
	var workloads []observe.Workload
	for i := range reloaded {
		workloads = append(workloads, observe.Deployment(d.name, numbered("ours", i)))
	}
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, workload := range workloads {
		if _, err := d.watcher.AwaitTemplateChanges(waiting, workload, round); err != nil {
			d.say("%v", err) // the figure reports it
		}
	}
	if err := errors.Join(d.awaitSettled(ctx), d.watcher.Sync(ctx)); err != nil {
		return nil, err
	}
	figures := d.judgeWrites(ev, out, written, failures)
	figures = append(figures, figure.Figure{
		Name: ev.name + ": missed or doubled", Value: float64(d.unequal(workloads, round)), Budget: figure.Exactly(0),
		Note: fmt.Sprintf("%d workloads whose configuration has changed", len(workloads)),
	})
	if ev.handover > 0 {
		figures = append(figures, figure.Figure{
			Name: ev.name + ": until another leads", Unit: figure.Seconds, Value: out.handover.Seconds(), Budget: figure.AtMost(ev.handover.Seconds()),
		})
	}
	return figures, nil
}

// judgeWrites counts the writes that failed. With failurePolicy Fail, those that began before the endpoint of a crashed replica
// was removed are counted apart, without a budget.
func (d disruptions) judgeWrites(ev event, out outcome, written int, failures []failure) []figure.Figure {
	early := 0
	for _, f := range failures {
		if ev.crash && f.began.Before(out.routed) {
			early++
			continue
		}
		d.say("%s: after %s: %s", ev.name, f.took.Round(time.Millisecond), f.text)
	}
	d.say("%s: %d writes, %d failed, %d of them until the endpoint was removed, handover %s",
		ev.name, written, len(failures), early, out.handover.Round(time.Millisecond))
	figures := []figure.Figure{{
		Name: ev.name + ": failed writes", Value: float64(len(failures) - early), Budget: figure.Exactly(0),
		Note: fmt.Sprintf("%d writes of users through the webhook", written),
	}}
	if ev.crash {
		figures[0].Note += ", without those until the endpoint was removed"
		figures = append(figures, figure.Figure{
			Name: ev.name + ": failed writes until the endpoint was removed", Value: float64(early),
			Note: "calls in flight, and connections to a replica that has ended",
		})
	}
	return figures
}

// patient is the timeout of the webhook with failurePolicy Fail, in seconds: calls that are refused fail, those that a slow machine
// delays do not.
const patient = 30

// shipped is the timeout of the manifests, in seconds.
const shipped = 3

// setFailurePolicy sets it in the webhook's configuration.
func (d disruptions) setFailurePolicy(ctx context.Context, policy admissionv1.FailurePolicyType) error {
	object := &admissionv1.MutatingWebhookConfiguration{}
	if err := d.Get(ctx, client.ObjectKey{Name: d.installation.WebhookConfiguration()}, object); err != nil {
		return err
	}
	timeout := int32(patient)
	if policy == admissionv1.Ignore {
		timeout = shipped
	}
	for n := range object.Webhooks {
		object.Webhooks[n].FailurePolicy, object.Webhooks[n].TimeoutSeconds = &policy, &timeout
	}
	return d.Update(ctx, object)
}

func (d disruptions) rollingUpdate(ctx context.Context) (outcome, error) {
	return outcome{}, d.installation.RestartAll(ctx)
}

// signalLeader sends the leader a signal that ends it, or freezes it: then it goes on when another replica leads, and ends.
func (d disruptions) signalLeader(signal syscall.Signal) func(ctx context.Context) (outcome, error) {
	return func(ctx context.Context) (outcome, error) {
		leader, err := d.installation.Leader(ctx)
		if err != nil {
			return outcome{}, err
		}
		exited, started := leader.Exited(), time.Now()
		leader.Signal(signal)
		err = d.awaitOther(ctx, leader.Name())
		out := outcome{handover: time.Since(started)}
		leader.Signal(syscall.SIGCONT)
		if err != nil {
			return out, err
		}
		select {
		case <-exited:
			return out, nil
		case <-time.After(time.Minute):
			return out, fmt.Errorf("%s, which leads no more, runs on", leader.Name())
		}
	}
}

// killLeader kills the leader: the webhook loses half of its endpoints, and the lease runs out.
func (d disruptions) killLeader(ctx context.Context) (outcome, error) {
	leader, err := d.installation.Leader(ctx)
	if err != nil {
		return outcome{}, err
	}
	started := time.Now()
	leader.Kill()
	// The lease lasts longer than the endpoint.
	out, err := d.awaitUnrouted(ctx, leader.Name())
	if err != nil {
		return out, err
	}
	err = d.awaitOther(ctx, leader.Name())
	out.handover = time.Since(started)
	return out, err
}

// killStandby kills a replica that does not lead: the webhook loses half of its endpoints.
func (d disruptions) killStandby(ctx context.Context) (outcome, error) {
	leader, err := d.installation.Leader(ctx)
	if err != nil {
		return outcome{}, err
	}
	for _, r := range d.installation.Replicas() {
		if r != leader {
			r.Kill()
			return d.awaitUnrouted(ctx, r.Name())
		}
	}
	return outcome{}, errors.New("there is no standby")
}

// awaitUnrouted waits until the endpoint of a replica is removed.
func (d disruptions) awaitUnrouted(ctx context.Context, name string) (outcome, error) {
	err := await(ctx, "the endpoint of "+name+" to be removed", 10*time.Millisecond, time.Minute, func(context.Context) error {
		if slices.Contains(d.installation.Balancer().Ready(), name) {
			return errors.New("it gets new connections")
		}
		return nil
	})
	return outcome{routed: time.Now()}, err
}

// awaitOther waits until another replica than the named one leads.
func (d disruptions) awaitOther(ctx context.Context, name string) error {
	return await(ctx, "another leader", 20*time.Millisecond, time.Minute, func(ctx context.Context) error {
		for _, r := range d.installation.Replicas() {
			if r.Name() == name || r.PID() == 0 {
				continue
			}
			if samples, err := r.Metrics(ctx); err == nil && samples.Sum("leader_election_master_status") == 1 {
				return nil
			}
		}
		return fmt.Errorf("%s was the last one", name)
	})
}

func (d disruptions) restartAPIServer(ctx context.Context) (outcome, error) {
	return outcome{}, d.cp.Component(controlplane.APIServer).Restart(ctx)
}

// users write to workloads through the webhook until they are stopped.
type users struct {
	stop    func()
	writing sync.WaitGroup

	mutex    sync.Mutex
	written  int
	failures []failure
}

// failure is a write that the API server has refused.
type failure struct {
	began time.Time
	took  time.Duration
	text  string
}

// startUsers starts them. With an outage, writes that fail in the API server itself do not count.
func (d disruptions) startUsers(ctx context.Context, outage bool) *users {
	ctx, cancel := context.WithCancel(ctx)
	u := &users{stop: cancel}
	for user := range writers {
		u.writing.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"write":"%d"}}}`, began.UnixNano())
				err := d.merge(context.WithoutCancel(ctx), &appsv1.Deployment{}, numbered("users", user), patch)
				if !outage || err == nil || strings.Contains(err.Error(), "webhook") {
					u.count(began, err)
				}
			}
		})
	}
	return u
}

func (u *users) count(began time.Time, err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.written++
	if err != nil {
		u.failures = append(u.failures, failure{began, time.Since(began), err.Error()})
	}
}

// end stops the users when they have made a number of writes, and returns how many those are, and the failures.
func (u *users) end(ctx context.Context, least int) (written int, failures []failure, err error) {
	err = await(ctx, "users to write", 10*time.Millisecond, 2*time.Minute, func(context.Context) error {
		u.mutex.Lock()
		defer u.mutex.Unlock()
		if u.written < least {
			return fmt.Errorf("%d writes of %d", u.written, least)
		}
		return nil
	})
	u.stop()
	u.writing.Wait()
	return u.written, u.failures, err
}
