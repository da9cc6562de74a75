package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/pkg/app"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

const (
	apiHost  = "api"
	apiURL   = "http://api:80"
	userHost = "user"
	// installation is the namespace of the program; the key Secret and the lease are there.
	installation = "pod-reloader"
	webhookPort  = "9443"
	probePort    = "8081"
)

// slot is the place of one replica in the installation: its process ends and is started again.
type slot struct {
	name string
	// flags are what the next process is started with.
	flags []string
	// offset is how far the clock of this machine is ahead.
	offset atomic.Int64
	// starts counts the processes.
	starts  int
	current *replica
	// wanted means that a process must run: one that ends by itself is started again.
	wanted bool
	// second means that it is of the second installation.
	second bool
}

// replica is one process of the program.
type replica struct {
	name     string
	slot     *slot
	options  options.Options
	flags    []string
	registry *prometheus.Registry
	stop     context.CancelFunc
	ended    chan error
	started  time.Time
	// endpoint means that the Service routes to it; probed is when it was asked last.
	endpoint atomic.Bool
	probed   time.Time
	// leaving means that it got SIGTERM; killed that it was cut off.
	leaving, killed bool
	// counted has its metrics as they were when it was killed.
	counted map[string]*dto.MetricFamily
	frozen  atomic.Bool
	client  *http.Client
	probe   *http.Client
	// online ends when the replica is cut off; offline ends it.
	online  context.Context
	offline context.CancelFunc
}

// parse returns the options of a command line.
func parse(args []string) (options.Options, error) {
	flags := options.NewFlags()
	if err := flags.Parse(args); err != nil {
		return options.Options{}, err
	}
	env := options.OSEnvironment()
	env.Getenv = func(string) string { return "" }
	return flags.Complete(env)
}

// baseFlags are the flags of every replica.
func baseFlags() []string {
	return []string{
		"--leader-elect", "--namespace=" + installation, "--webhook-bind-address=:" + webhookPort,
		"--health-probe-bind-address=:" + probePort, "--metrics-bind-address=0",
	}
}

// acceptable returns flags without the one that is refused where no annotations of Reloader are read.
func acceptable(flags []string) []string {
	if line, err := readCommandLine(flags); err != nil || line.last(dialectFlag, "true") != "false" {
		return flags
	}
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return flagName(flag) == autoFlag })
}

// start starts a process in a slot.
func (s *simulation) start(at *slot) error {
	o, err := parse(slices.Concat(baseFlags(), at.names(), acceptable(at.flags)))
	if err != nil {
		return fmt.Errorf("flags of %s: %w", at.name, err)
	}
	waits, err := gatesOf(at.flags)
	if err != nil {
		return err
	}
	at.starts++
	name := at.name + "." + strconv.Itoa(at.starts)
	ctx, stop := context.WithCancel(context.Background())
	r := &replica{
		name: name, slot: at, options: o, flags: at.flags, registry: prometheus.NewRegistry(), stop: stop,
		ended: make(chan error, 1), started: time.Now(),
	}
	r.online, r.offline = context.WithCancel(context.Background())
	r.client = s.webhookClient(r)
	r.probe = s.plainClient(apiHost)
	at.current, at.wanted = r, true
	s.balancing.Lock()
	s.replicas = append(s.replicas, r)
	s.balancing.Unlock()
	// client-go keeps the dialer of each transport for as long as the transport can be reached: it must not lead back to it.
	network := s.net
	host := app.Host{
		Config: &rest.Config{Host: apiURL, QPS: -1, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			return network.Dial(ctx, name, address)
		}, WrapTransport: func(next http.RoundTripper) http.RoundTripper { return s.shortcut(r.online, next, name) }},
		Listen: func(_, address string) (net.Listener, error) { return s.net.Listen(name, address) },
		Serve: func(ctx context.Context, address string, handler http.Handler) error {
			return s.admission(ctx, name, address, handler)
		},
		Random:    rand.NewChaCha8([32]byte{byte(at.starts), byte(len(s.replicas)), byte(s.history.Seed)}),
		Registry:  r.registry,
		Now:       func() time.Time { return time.Now().Add(time.Duration(at.offset.Load())) },
		SetLogger: func(logr.Logger) {},
	}
	go func() {
		r.ended <- app.Run(ctx, host, o, "simulated", s.logger(r))
		s.gate.wake()
	}()
	s.note("%s starts with %v", name, at.flags)
	s.oracle.Fault(down(r.name, false))
	s.oracle.ask(func(o *oracle.Oracle) { o.Timing(r.name, waits.settle, waits.settleMax, waits.refractory) })
	s.after(time.Second, func() { s.look(r) })
	return nil
}

// admission is app.Host.Serve: without TLS, since sockets and certificate files have no place in a bubble.
func (s *simulation) admission(ctx context.Context, name, address string, handler http.Handler) error {
	listener, err := s.net.Listen(name, address)
	if err != nil {
		return err
	}
	server := manager.Server{Name: "admission", Listener: listener, Server: &http.Server{Handler: handler}}
	return server.Start(ctx)
}

// terminate is SIGTERM: the Service drops the replica after a moment, the process ends by itself.
func (s *simulation) terminate(r *replica) {
	if r.leaving || r.killed {
		return
	}
	s.note("%s gets SIGTERM", r.name)
	r.leaving = true
	r.stop()
	s.after(time.Duration(s.random.IntN(2000))*time.Millisecond, func() { r.endpoint.Store(false) })
}

// kill is SIGKILL: nothing that the process does from now on reaches anything, and another one can take its place at once. Its
// goroutines cannot be ended from outside: they go through their shutdown as a zombie that is cut off.
func (s *simulation) kill(r *replica) {
	if r.killed {
		return
	}
	s.note("%s is killed", r.name)
	r.counted = r.scrape()
	r.killed = true
	s.net.Down(r.name)
	r.offline()
	r.stop()
	s.zombies = append(s.zombies, r)
	s.after(time.Duration(s.random.IntN(2000))*time.Millisecond, func() { r.endpoint.Store(false) })
	s.vacate(r)
}

// vacate frees the slot of a process that does not work any more. It is started again if it should run, as a kubelet does.
func (s *simulation) vacate(r *replica) {
	at := r.slot
	at.current = nil
	s.oracle.Fault(down(r.name, true))
	if at.wanted {
		s.after(restartDelay, func() { s.restart(at) })
	}
}

// reap looks for processes that have ended.
func (s *simulation) reap() {
	for _, at := range s.slots {
		if r := at.current; r != nil {
			if over, err := r.over(); over {
				s.ended(r, err)
			}
		}
	}
	s.zombies = slices.DeleteFunc(s.zombies, func(r *replica) bool {
		over, _ := r.over()
		if over {
			s.net.CloseHost(r.name)
		}
		return over
	})
}

// over reports whether the program has returned, and with what. It says so once.
func (r *replica) over() (over bool, err error) {
	select {
	case err = <-r.ended:
		return true, err
	default:
		return false, nil
	}
}

func (s *simulation) ended(r *replica, err error) {
	r.endpoint.Store(false)
	s.net.CloseHost(r.name)
	if !r.leaving && !s.closing {
		s.note("%s ended by itself: %v", r.name, err)
		s.endings = append(s.endings, fmt.Sprintf("%s: %v", r.name, err))
		if s.patience() == calm || !lostLease(err) {
			s.oracle.report(oracle.Violation{
				Law: "alive", Signature: "alive/ended", Subject: r.name, Text: fmt.Sprintf("the program ended by itself: %v", err), At: time.Now(),
			})
		}
	}
	s.vacate(r)
}

// lostLease reports whether a process ended because it could not renew its lease, as it must: another replica leads then.
func lostLease(err error) bool {
	return err != nil && strings.Contains(err.Error(), "run the manager: leader election lost")
}

// restartDelay is how long it takes until a container that has ended runs again.
const restartDelay = 500 * time.Millisecond

func (s *simulation) restart(at *slot) {
	if at.wanted && at.current == nil && !s.closing {
		if err := s.start(at); err != nil {
			s.broken = err
		}
	}
}

// look asks a replica whether it is ready, as a kubelet does; the Service routes accordingly.
func (s *simulation) look(r *replica) {
	if r.killed || r.leaving || r.slot.current != r || s.closing {
		return
	}
	if !r.endpoint.Load() || r.frozen.Load() || time.Since(r.probed) >= probeEvery {
		s.probe(r)
	}
	next := 5 * time.Second
	if !r.endpoint.Load() {
		next = time.Second
	}
	s.after(next, func() { s.look(r) })
}

// probeEvery is how often a replica that is ready is asked again. One that is frozen is found out sooner, without a request.
const probeEvery = 20 * time.Second

func (s *simulation) probe(r *replica) {
	ready := make(chan bool, 1)
	go func() { ready <- s.ready(r) }()
	s.settle()
	select {
	case is := <-ready:
		r.endpoint.Store(is)
	default: // it does not answer now
		r.endpoint.Store(false)
	}
	r.probed = time.Now()
}

func (s *simulation) ready(r *replica) bool {
	if r.frozen.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.name+":"+probePort+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := r.probe.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// endpoints are the replicas that the Service of an installation routes to, in the order of their starts.
func (s *simulation) endpoints(second bool) []*replica {
	return slices.DeleteFunc(slices.Clone(s.replicas), func(r *replica) bool { return r.slot.second != second || !r.endpoint.Load() })
}

// scrape reads the metrics of a replica. What one that was killed counts as a zombie has not happened.
func (r *replica) scrape() map[string]*dto.MetricFamily {
	if r.killed {
		return r.counted
	}
	families, err := r.registry.Gather()
	byName := make(map[string]*dto.MetricFamily, len(families))
	if err != nil {
		return byName
	}
	for _, family := range families {
		byName[family.GetName()] = family
	}
	return byName
}
