package simulate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	mathrand "math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// workerVariable makes a process a worker: it reads jobs, a JSON text a line, and writes an outcome for each. A worker of
// its own process has one processor, so that goroutines run in nearly the same order each time, and what crashes it is
// found in one history.
const workerVariable = "SIMULATE_WORKER"

// profileVariable has the file into which a worker writes what it spends its processor time on; its process number is added.
const profileVariable = "SIMULATE_CPUPROFILE"

// IsWorker reports whether this process is a worker.
func IsWorker() bool { return os.Getenv(workerVariable) != "" }

// job is what a worker is asked to do.
type job struct {
	History history.History `json:"history"`
	// Shrink is how many runs may be spent on making a failing history shorter.
	Shrink int `json:"shrink,omitempty"`
	// ShrinkFor is how much real time may be spent on it; 0 does not limit it.
	ShrinkFor time.Duration `json:"shrinkFor,omitempty"`
	// Want is the signature that the shorter history must have; empty means that of the first violation.
	Want    string `json:"want,omitempty"`
	Verbose bool   `json:"verbose,omitempty"`
	// Traced asks for the decisions of the scheduler where no law is broken; where one is, they are always returned.
	Traced bool `json:"traced,omitempty"`
	// limit is how long the job may take in real time; 0 means jobLimit.
	limit time.Duration
}

// outcome is what became of a job.
type outcome struct {
	Violations []oracle.Violation `json:"violations,omitempty"`
	// Short is the history that is left after shrinking; nil if the history did not fail as it was to.
	Short    *history.History `json:"short,omitempty"`
	Strayed  int              `json:"strayed,omitempty"`
	Trace    []string         `json:"trace,omitempty"`
	Requests int              `json:"requests"`
	Reviews  int              `json:"reviews"`
	Hits     int              `json:"hits"`
	Writes   int              `json:"writes"`
	Tried    map[string]int   `json:"tried,omitempty"`
	Judged   map[string]int   `json:"judged,omitempty"`
	Lasted   time.Duration    `json:"lasted"`
	Took     time.Duration    `json:"took"`
	Journal  []string         `json:"journal,omitempty"`
}

// Prepare readies the process for simulations: client-go keeps the time of its last error for the whole process and sleeps
// until some time after it, which in a bubble of another time is years away.
func Prepare() {
	utilruntime.ErrorHandlers = nil //nolint:reassign // there is no other way to leave it out
	klog.SetLogger(logr.Discard())
	crlog.SetLogger(logr.Discard())
}

// RunWorker serves jobs from the standard input until it ends. testing/synctest wants a test, so this is one.
func RunWorker() {
	Prepare()
	debug.SetGCPercent(1000)   // a history is short, and there is memory
	runtime.MemProfileRate = 0 // nothing reads the samples
	go endWith(os.Getppid())
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "Worker", F: work}}, nil, nil)
}

// endWith ends the process soon after its parent: a hunt that is killed cannot end its workers.
func endWith(parent int) {
	for os.Getppid() == parent {
		time.Sleep(time.Second) //nolint:forbidigo // the time is real here, outside of the bubble
	}
	os.Exit(1)
}

func work(t *testing.T) { serve(t, os.Stdin, os.Stdout) } //nolint:thelper // it is the test

func serve(t *testing.T, in, out *os.File) {
	t.Helper()
	defer profile(t, os.Getenv(profileVariable))()
	decoder := json.NewDecoder(bufio.NewReader(in))
	encoder := json.NewEncoder(out)
	for {
		var j job
		if err := decoder.Decode(&j); err != nil {
			return // the hunt is over
		}
		if err := encoder.Encode(do(t, j)); err != nil {
			t.Fatal(err)
		}
	}
}

// profile begins a profile and returns what ends it; without a file it does nothing.
func profile(t *testing.T, file string) (end func()) {
	t.Helper()
	if file == "" {
		return func() {}
	}
	out, err := os.Create(fmt.Sprintf("%s.%d", file, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		t.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = out.Close()
	}
}

// do runs a history, and shortens it if it fails.
func do(t *testing.T, j job) outcome {
	t.Helper()
	started := time.Now()
	result := runSeeded(t, j.History, Options{Verbose: j.Verbose})
	o := outcome{
		Violations: result.Violations, Strayed: result.Strayed, Requests: result.Requests, Reviews: result.Reviews,
		Hits: result.Hits, Writes: result.Writes, Tried: result.Tried, Judged: result.Judged, Lasted: result.Lasted, Took: time.Since(started),
		Journal: result.Journal,
	}
	if j.Traced || len(result.Violations) > 0 {
		o.Trace = result.Trace
	}
	if len(result.Violations) == 0 || j.Shrink == 0 {
		return o
	}
	if want := cmp.Or(j.Want, result.Violations[0].Signature); hasSignature(result.Violations, want) {
		shrink(t, j, want, &o)
	}
	return o
}

// knowsGraph reports whether the program can know the custom resources of a history: without its configuration it holds them for ever,
// which the oracle takes for another failure.
func knowsGraph(s history.Setup) bool { return !s.Graph || slices.Contains(s.Flags, configMapFlag) }

// shrink makes the failing history of a job shorter.
func shrink(t *testing.T, j job, want string, o *outcome) {
	t.Helper()
	until := time.Now().Add(j.ShrinkFor)
	short := history.Shrink(j.History, func(h history.History) bool {
		if j.ShrinkFor > 0 && time.Now().After(until) || !knowsGraph(h.Setup) {
			return false
		}
		return hasSignature(runSeeded(t, h, Options{}).Violations, want)
	}, j.Shrink)
	if last := runSeeded(t, short, Options{}); hasSignature(last.Violations, want) {
		o.Violations = last.Violations
	} else { // Chance decided otherwise this time: keep what failed for sure, with its decisions.
		short = j.History
		short.Trace = o.Trace
	}
	slices.SortStableFunc(o.Violations, func(a, b oracle.Violation) int {
		return cmp.Compare(btoi(a.Signature != want), btoi(b.Signature != want))
	})
	short = failed(short, o.Violations[0], short.Trace)
	o.Short = &short
}

// runSeeded runs a history. The intervals that client-go draws by chance follow from its seed, whatever ran before in this process: a
// replay has the same ones.
func runSeeded(t *testing.T, h history.History, o Options) Result {
	t.Helper()
	mathrand.Seed(int64(h.Seed)) //nolint:staticcheck // client-go draws from the global source
	return Run(t, h, o)
}

func hasSignature(violations []oracle.Violation, signature string) bool {
	for _, v := range violations {
		if v.Signature == signature {
			return true
		}
	}
	return false
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
