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

// event is something that must disturb no user and lose no reload.
type event struct {
	name string
	// policy is the webhook's failurePolicy meanwhile.
	policy admissionv1.FailurePolicyType
	// do returns when the event is over, and how long it took until another replica led.
	do func(ctx context.Context) (time.Duration, error)
	// handover is the most that this may take; 0 if it is not measured.
	handover time.Duration
	// outage says that users cannot write meanwhile.
	outage bool
}

// takeover is the most time until another replica leads after a crash: the lease lasts 15 s, and is tried for every 2 s.
const takeover = 20 * time.Second

func (w *world) events() []event {
	return []event{
		{name: "rolling update, failurePolicy Fail", policy: admissionv1.Fail, do: w.rollingUpdate},
		{name: "leader stopped, failurePolicy Fail", policy: admissionv1.Fail, do: w.signalLeader(syscall.SIGTERM), handover: 3 * time.Second},
		{name: "leader killed", policy: admissionv1.Ignore, do: w.signalLeader(syscall.SIGKILL), handover: takeover},
		{name: "leader frozen", policy: admissionv1.Ignore, do: w.signalLeader(syscall.SIGSTOP), handover: takeover},
		{name: "standby killed", policy: admissionv1.Ignore, do: w.killStandby},
		{name: "API server restarted", policy: admissionv1.Ignore, do: w.restartAPIServer, outage: true},
	}
}

// availability: users write all the time while replicas come and go. Their writes and the reloads are counted.
func availability(ctx context.Context, w *world) (figures []figure.Figure, err error) {
	watcher, err := w.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	// The Service takes a replica out later than that replica knows that it ends.
	w.in.Balancer().SetEndpointDelay(time.Second)
	defer w.in.Balancer().SetEndpointDelay(0)
	err = w.with(ctx, []string{"--shutdown-grace-period=3s"}, func() error {
		figures, err = w.disturbed(ctx, watcher)
		return err
	})
	return figures, err
}

// reloaded is how many workloads depend on a ConfigMap that is changed during each event, writers how many users write others.
const reloaded, writers = 10, 8

func (w *world) disturbed(ctx context.Context, watcher *observe.Watcher) ([]figure.Figure, error) {
	for _, create := range []func(ctx context.Context, i int) error{
		func(ctx context.Context, i int) error { return w.configMap(ctx, numbered("config", i)) },
		func(ctx context.Context, i int) error {
			_, err := w.deploy(ctx, deployment{name: numbered("ours", i), configMaps: []string{numbered("config", i)}})
			return err
		},
		func(ctx context.Context, i int) error {
			_, err := w.deploy(ctx, deployment{name: numbered("users", i), configMaps: []string{numbered("config", i)}})
			return err
		},
	} {
		if err := parallel(ctx, reloaded, create); err != nil {
			return nil, err
		}
	}
	if err := w.settled(ctx); err != nil {
		return nil, err
	}
	var figures []figure.Figure
	events := slices.DeleteFunc(w.events(), func(e event) bool { return e.handover == takeover && !w.Crashes })
	for n, e := range events {
		found, err := w.during(ctx, watcher, e, n+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		figures = append(figures, found...)
	}
	return figures, nil
}

// during lets an event happen while users write, right after a change of the configuration, and counts.
func (w *world) during(ctx context.Context, watcher *observe.Watcher, e event, round int) ([]figure.Figure, error) {
	if err := w.setFailurePolicy(ctx, e.policy); err != nil {
		return nil, err
	}
	users := w.startUsers(ctx, e.outage)
	err := parallel(ctx, reloaded, func(ctx context.Context, i int) error { return w.change(ctx, numbered("config", i), round) })
	var took time.Duration
	if err == nil {
		took, err = e.do(ctx)
	}
	written, failed, stopped := users.end(ctx, w.Writes)
	if err := errors.Join(err, stopped, w.in.StartAll(ctx)); err != nil {
		return nil, err
	}
	var workloads []observe.Workload
	for i := range reloaded {
		workloads = append(workloads, observe.Deployment(w.name, numbered("ours", i)))
	}
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, workload := range workloads {
		if _, err := watcher.AwaitTemplateChanges(waiting, workload, round); err != nil {
			w.say("%v", err) // the figure reports it
		}
	}
	if err := errors.Join(w.settled(ctx), watcher.Sync(ctx)); err != nil {
		return nil, err
	}
	for _, text := range failed {
		w.say("%s: %s", e.name, text)
	}
	figures := []figure.Figure{
		{
			Name: e.name + ": failed writes", Value: float64(len(failed)), Budget: figure.Exactly(0),
			Note: fmt.Sprintf("%d writes of users through the webhook", written),
		},
		{Name: e.name + ": missed or doubled", Value: float64(unequal(watcher, workloads, round)), Budget: figure.Exactly(0)},
	}
	if e.handover > 0 {
		figures = append(figures, figure.Figure{
			Name: e.name + ": until another leads", Unit: figure.Seconds, Value: took.Seconds(), Budget: figure.AtMost(e.handover.Seconds()),
		})
	}
	return figures, nil
}

// setFailurePolicy sets it in the webhook's configuration.
func (w *world) setFailurePolicy(ctx context.Context, policy admissionv1.FailurePolicyType) error {
	object := &admissionv1.MutatingWebhookConfiguration{}
	if err := w.Get(ctx, client.ObjectKey{Name: w.in.WebhookConfiguration()}, object); err != nil {
		return err
	}
	for n := range object.Webhooks {
		object.Webhooks[n].FailurePolicy = &policy
	}
	return w.Update(ctx, object)
}

func (w *world) rollingUpdate(ctx context.Context) (time.Duration, error) {
	return 0, w.in.RestartAll(ctx)
}

// signalLeader sends the leader a signal that ends it, or freezes it: then it goes on when another replica leads, and ends.
func (w *world) signalLeader(signal syscall.Signal) func(ctx context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		leader, err := w.in.Leader(ctx)
		if err != nil {
			return 0, err
		}
		exited, started := leader.Exited(), time.Now()
		leader.Signal(signal)
		err = w.awaitOther(ctx, leader.Name())
		took := time.Since(started)
		leader.Signal(syscall.SIGCONT)
		if err != nil {
			return 0, err
		}
		select {
		case <-exited:
			return took, nil
		case <-time.After(time.Minute):
			return 0, fmt.Errorf("%s, which leads no more, runs on", leader.Name())
		}
	}
}

// awaitOther waits until another replica than the named one leads.
func (w *world) awaitOther(ctx context.Context, name string) error {
	return await(ctx, "another leader", 20*time.Millisecond, time.Minute, func(ctx context.Context) error {
		for _, r := range w.in.Replicas() {
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

// killStandby kills a replica that does not lead: the webhook loses half of its endpoints.
func (w *world) killStandby(ctx context.Context) (time.Duration, error) {
	leader, err := w.in.Leader(ctx)
	if err != nil {
		return 0, err
	}
	for _, r := range w.in.Replicas() {
		if r != leader {
			r.Kill()
			return 0, nil
		}
	}
	return 0, errors.New("there is no standby")
}

func (w *world) restartAPIServer(ctx context.Context) (time.Duration, error) {
	return 0, w.cp.Component(controlplane.APIServer).Restart(ctx)
}

// users write to workloads through the webhook until they are stopped.
type users struct {
	stop    func()
	writing sync.WaitGroup

	mutex   sync.Mutex
	written int
	failed  []string
}

// startUsers starts them. With an outage, writes that fail in the API server itself do not count.
func (w *world) startUsers(ctx context.Context, outage bool) *users {
	ctx, cancel := context.WithCancel(ctx)
	u := &users{stop: cancel}
	for user := range writers {
		u.writing.Go(func() {
			for ctx.Err() == nil {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"write":"%d"}}}`, time.Now().UnixNano())
				err := w.merge(context.WithoutCancel(ctx), &appsv1.Deployment{}, numbered("users", user), patch)
				if !outage || err == nil || strings.Contains(err.Error(), "webhook") {
					u.count(err)
				}
			}
		})
	}
	return u
}

func (u *users) count(err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.written++
	if err != nil {
		u.failed = append(u.failed, err.Error())
	}
}

// end stops the users when they have made a number of writes, and returns how many those are, and the failures.
func (u *users) end(ctx context.Context, least int) (written int, failed []string, err error) {
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
	return u.written, u.failed, err
}
