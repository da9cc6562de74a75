package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// process is a worker seen from the hunt.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	encoder *json.Encoder
	decoder *json.Decoder
	errors  *tail
}

// workerSettings are those of the Go runtime: math/rand obeys its seed, and a goroutine starts with a stack of the average size.
// A worker starts some thousand goroutines for each history, whose stacks would be copied several times while they grow.
const workerSettings = "randseednop=0,adaptivestackstart=1"

// startProcess starts this program again as a worker. The environment is added to that of this program.
func startProcess(ctx context.Context, environment ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(append(os.Environ(), environment...), workerVariable+"=1", "GOMAXPROCS=1", "GODEBUG="+workerSettings)
	cmd.WaitDelay = time.Second
	p := &process{cmd: cmd, errors: &tail{}}
	cmd.Stderr = p.errors
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	p.encoder, p.decoder = json.NewEncoder(p.in), json.NewDecoder(out)
	return p, nil
}

// jobLimit is how long a job may take in real time. One that takes longer is stuck: something in the bubble waits for what the
// scheduler does not see. With the race detector, a history takes ten seconds of a fast processor.
const jobLimit = 15 * time.Minute

// do has the worker do a job. A crashError says that it crashed or was stuck, with the beginning of what it printed.
func (p *process) do(j job) (outcome, error) {
	var o outcome
	var stuck atomic.Bool
	// The Go runtime prints the stacks of all goroutines on this signal, and ends.
	watchdog := time.AfterFunc(j.lasts(), func() {
		stuck.Store(true)
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	})
	defer watchdog.Stop()
	if err := p.encoder.Encode(j); err != nil {
		return o, &crashError{hung: stuck.Load(), text: fmt.Sprintf("the worker ended: %v\n%s", err, p.errors)}
	}
	if err := p.decoder.Decode(&o); err != nil {
		_ = p.cmd.Wait()
		rest, _ := io.ReadAll(p.decoder.Buffered())
		return o, &crashError{hung: stuck.Load(), text: fmt.Sprintf("%v\n%s%s", err, rest, p.errors)}
	}
	return o, nil
}

// lasts is how long the job may take in real time.
func (j job) lasts() time.Duration {
	if j.limit > 0 {
		return j.limit
	}
	return jobLimit * time.Duration(1+j.Shrink/20)
}

// crashed and hung are the signatures of histories with which a worker ends.
const crashed, hung = "alive/crash", "alive/hang"

// crashError says that a worker ended with a job.
type crashError struct {
	// hung means that it was ended because the job took too long.
	hung bool
	text string
}

// Error returns the text.
func (e *crashError) Error() string {
	if e.hung {
		return "the simulation does not end: " + e.text
	}
	return "the simulation crashed: " + e.text
}

func (e *crashError) signature() string {
	if e.hung {
		return hung
	}
	return crashed
}

// crashText bounds the text of a violation: the stacks of all goroutines fill many pages.
const crashText = 4 << 10

func (e *crashError) violation() oracle.Violation {
	text := e.Error()
	return oracle.Violation{Law: "alive", Signature: e.signature(), Text: strings.ToValidUTF8(text[:min(len(text), crashText)], "")}
}

// end lets the worker end, and returns how much processor time it took.
func (p *process) end() time.Duration {
	_ = p.in.Close()
	_ = p.cmd.Wait()
	if p.cmd.ProcessState == nil {
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// tail keeps the beginning of what is written, where a panic says what it is.
type tail struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

const tailSize = 256 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := tailSize - t.kept.Len(); left > 0 {
		t.kept.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.kept.String())
}
