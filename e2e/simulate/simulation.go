package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/cluster"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/memnet"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// simulation is one run of a history. But for what is said to be shared, only the scheduler's goroutine uses it.
type simulation struct {
	history history.History
	random  *rand.Rand
	apart   *rand.Rand // what decides about regular requests
	began   time.Time

	net     *memnet.Network
	gate    *gate
	api     *apiserver.Server
	http    *http.Server
	cluster *cluster.Cluster
	// operator looks after custom resources; nothing is done where the history has none.
	operator *operator
	oracle   *judge
	faults   faults
	healing  []func()
	// faulty is when the last fault ends.
	faulty time.Time
	// opened is when all was there that users have from the beginning.
	opened time.Time
	trace  trace

	// balancing guards balance, the list of replicas and the webhook faults: admission runs on goroutines of the API server.
	balancing sync.Mutex
	balance   *rand.Rand

	// flags are those of the installation: what a replica is started with, but for what a fault changes of it.
	flags    []string
	slots    []*slot
	replicas []*replica
	// zombies are replicas that were killed and whose goroutines have not ended yet.
	zombies    []*replica
	timers     []timer
	timerCount int
	// moment counts the decisions since time went on last.
	moment int
	acts   sync.WaitGroup
	acting atomic.Int64
	// closing means that the end has begun: nothing is started any more.
	closing bool
	// resting means that users and faults are done, and the oracle looks at what is left.
	resting bool
	broken  error
	endings []string

	// last is the write after which its sender is killed, stored means that it is answered.
	last   atomic.Pointer[world.Call]
	stored atomic.Bool

	requests, hits, writes int
	// crashed counts the replicas that were killed at a write.
	crashed int
	calls   atomic.Int64
	tried   map[string]int
	journal *journal
	user    user
	// userOnline ends when users are cut off; userOffline ends it.
	userOnline  context.Context
	userOffline context.CancelFunc
}

var errHotLoop = errors.New("the program does not wait")

// newSimulation builds the world; nothing runs yet.
func newSimulation(h history.History, o Options) (*simulation, error) {
	s := &simulation{
		history: h, began: time.Now(),
		random: rand.New(rand.NewPCG(h.Seed, 1)), balance: rand.New(rand.NewPCG(h.Seed, 2)), apart: rand.New(rand.NewPCG(h.Seed, 3)),
		net: memnet.New(), gate: newGate(), faults: faults{foreign: map[string]string{}}, tried: map[string]int{},
		operator: newOperator(h.Seed), trace: trace{follow: h.Trace}, journal: &journal{on: o.Verbose},
	}
	if _, err := parse(append(baseFlags(), h.Setup.Flags...)); err != nil {
		return nil, fmt.Errorf("setup.flags: %w", err)
	}
	rules, err := rulesOf(h.Setup.Flags)
	if err != nil {
		return nil, err
	}
	rules.Slack = time.Duration(h.Setup.Slack)
	s.flags = h.Setup.Flags
	if rules.Sides, err = sidesOf(h.Setup); err != nil {
		return nil, err
	}
	rules.HalfRead = h.Setup.Second != nil && h.Setup.Second.Scope == unread
	s.userOnline, s.userOffline = context.WithCancel(context.Background())
	s.oracle = newJudge(s, rules)
	webhooks, err := s.webhooks()
	if err != nil {
		return nil, err
	}
	s.api, err = apiserver.New(apiserver.Options{
		Client: func(r *http.Request) string { return r.RemoteAddr },
		Gate: func(ctx context.Context, call *world.Call) apiserver.Fate {
			s.oracle.Request(call)
			if underLock(call) {
				return s.faults.atOnce(call.Client)
			}
			return s.gate.Wait(ctx, call)
		},
		Authorize: func(call *world.Call) *metav1.Status {
			if call.Number > 0 {
				return nil // requests fail at the gate, as all others do; only access reviews ask for the permissions
			}
			return s.faults.withdrawn(call)
		},
		Webhooks: webhooks, NoStreamingLists: h.Setup.NoStreamingLists, Graph: h.Setup.Graph, TrackFields: h.Setup.TrackFields,
		OnCommit: func(c world.Commit) {
			s.cluster.Dirty(c)
			s.operator.note(c)
			s.oracle.Commit(c)
		},
		OnReply: s.replied,
	})
	if err != nil {
		return nil, fmt.Errorf("make the API server: %w", err)
	}
	s.user = newUser(s.plainClient(userHost), prefixOf(s.flags))
	s.user.client.Transport = s.shortcut(s.userOnline, s.user.client.Transport, userHost)
	s.cluster = cluster.New(store{s.api}, cluster.Options{StartBlocked: o.StartBlocked, Refused: s.oracle.Refused})
	return s, nil
}

// serveAPI serves the model of the API server on the network.
func (s *simulation) serveAPI() error {
	listener, err := s.net.Listen(apiHost, ":80")
	if err != nil {
		return err
	}
	s.http = &http.Server{Handler: s.api, ErrorLog: quietLog()}
	go func() { _ = s.http.Serve(listener) }()
	return nil
}

func (s *simulation) slot(name string) *slot {
	for _, at := range s.slots {
		if at.name == name {
			return at
		}
	}
	return nil
}

// note writes a line into the journal of the run.
func (s *simulation) note(format string, args ...any) {
	s.journal.add(time.Since(s.began), format, args...)
}

// violate reports what only the runner sees.
func (s *simulation) violate(law, subject, text string) {
	s.oracle.report(oracle.Violation{Law: law, Subject: subject, Text: text, Signature: law, At: time.Now()})
}

// logger is the log of a replica: the oracle reads it, and it is kept where a person wants to read it, as long as the replica is not
// killed.
func (s *simulation) logger(r *replica) logr.Logger {
	return funcr.New(func(prefix, args string) {
		if r.online.Err() == nil {
			s.oracle.ask(func(o *oracle.Oracle) { o.Log(r.name, prefix+" "+args, time.Now()) })
			s.note("%s log: %s %s", r.name, prefix, args)
		}
	}, funcr.Options{Verbosity: 1})
}

// store is the API server as the models of the controllers see it.
type store struct{ *apiserver.Server }

// Remove removes an object, if there is one.
func (s store) Remove(key world.Key) { s.Server.Remove(key) }
