package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

const (
	// readyInterval is how often a starting process is asked whether it is ready.
	readyInterval = 50 * time.Millisecond
	// defaultGrace is how long a process may take to end after SIGTERM.
	defaultGrace = time.Minute
)

// Program says what to run.
type Program struct {
	// Name names the process in errors and its log file; unique in a control plane.
	Name string
	// Path is the executable, Args what follows argv[0] (which is Name).
	Path string
	Args []string
	// Env is added to what the program inherits, which is no setting of its own.
	Env []string
	// Ready is asked again and again until it returns nil; then Start returns. Nil means that
	// the process is ready as soon as it runs. [URLReady] asks an URL.
	Ready func(context.Context) error
	// Grace is how long Stop lets the process end by itself before it kills it; zero means a minute.
	Grace time.Duration
}

// Process is a program that can be stopped and started again: a component of the control plane or
// a further one that [ControlPlane.StartProcess] started. It dies with this process in any case.
// All methods may be called from any goroutine, one at a time.
type Process struct {
	program Program
	logPath string
	pidDir  string
	// ended is called at each end of the process, before its waiters go on.
	ended func()

	mutex sync.Mutex
	run   *run
	// news is closed and replaced whenever the process gets a signal or ends.
	news chan struct{}
}

// run is one life of a process.
type run struct {
	command *exec.Cmd
	exited  chan struct{} // closed after the process was reaped
	err     error         // of Wait; to be read after exited is closed
}

// Name is the name of the program.
func (p *Process) Name() string { return p.program.Name }

// LogPath is the file with what the process wrote to standard output and error, all its lives
// one after another.
func (p *Process) LogPath() string { return p.logPath }

// LogEnd is the end of that file.
func (p *Process) LogEnd() string { return tail(p.logPath, 20) }

// ResidentMemory is how much memory of the machine the process holds now, in bytes.
func (p *Process) ResidentMemory() (int64, error) { return ProcessMemory(p.PID(), "VmRSS") }

// PeakMemory is the most memory that the process ever held, in bytes.
func (p *Process) PeakMemory() (int64, error) { return ProcessMemory(p.PID(), "VmHWM") }

// PID is the process id, or 0 when it does not run.
func (p *Process) PID() int {
	if r := p.current(); r != nil {
		return r.command.Process.Pid
	}
	return 0
}

// runs reports whether the process is there and not frozen.
func (p *Process) runs() bool {
	pid := p.PID()
	return pid != 0 && !stopped(pid)
}

// Exited is closed when the process ends, however it does. Of a process that does not run it is
// closed already.
func (p *Process) Exited() <-chan struct{} {
	if r := p.current(); r != nil {
		return r.exited
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// News is closed when the process gets the next signal from here, or ends: its readiness may change.
func (p *Process) News() <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.news == nil {
		p.news = make(chan struct{})
	}
	return p.news
}

func (p *Process) closeNews() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.news != nil {
		close(p.news)
		p.news = nil
	}
}

// ExitCode is that of the last life: -1 while it lasts and when a signal ended it.
func (p *Process) ExitCode() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.run == nil || !p.run.over() {
		return -1
	}
	return p.run.command.ProcessState.ExitCode()
}

// Start runs the program and waits until it is ready. When it ends before, or ctx does, Start
// leaves nothing running and its error has the end of the log.
func (p *Process) Start(ctx context.Context) error {
	if p.current() != nil {
		return fmt.Errorf("start %s: it is running already", p.Name())
	}
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name(), err)
	}
	if err := p.awaitReady(ctx, r); err != nil {
		p.Kill()
		return fmt.Errorf("start %s: %w\n%s", p.Name(), err, p.LogEnd())
	}
	return nil
}

// Stop asks the process to end (SIGTERM) and waits until it has; after its grace period, or when
// ctx is done, it is killed and that is an error. A process that does not run is stopped already.
func (p *Process) Stop(ctx context.Context) error {
	r := p.current()
	if r == nil {
		return nil
	}
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGCONT) // a frozen process gets no other signal
	grace := p.program.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.exited:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("stop %s: killed, it did not end within %s", p.Name(), grace)
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("stop %s: killed: %w", p.Name(), ctx.Err())
	}
}

// Kill ends the process at once (SIGKILL) and waits until it is gone.
func (p *Process) Kill() {
	if r := p.current(); r != nil {
		p.Signal(syscall.SIGKILL)
		<-r.exited
	}
}

// Restart stops the process, waits for its end and starts it again.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Freeze stops the process from doing anything (SIGSTOP) until Thaw, and returns when it does nothing any more; its
// connections stay open.
func (p *Process) Freeze() {
	p.Signal(syscall.SIGSTOP)
	for pid := p.PID(); pid != 0 && !stopped(pid); pid = p.PID() {
		<-time.After(time.Millisecond)
	}
}

// Thaw lets a frozen process go on (SIGCONT).
func (p *Process) Thaw() { p.Signal(syscall.SIGCONT) }

// Signal sends a signal to the process, if it runs.
func (p *Process) Signal(signal os.Signal) {
	if r := p.current(); r != nil {
		_ = r.command.Process.Signal(signal) // fails only when the process is gone
		p.closeNews()
	}
}

func (p *Process) current() *run {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.run == nil || p.run.over() {
		return nil
	}
	return p.run
}

func (r *run) over() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// launch starts the process from a thread that lives as long as the process does: the kernel's
// "signal me when my parent dies" goes by the thread that made the child.
func (p *Process) launch() (*run, error) {
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	command := exec.Command(p.program.Path, p.program.Args...)
	command.Args[0] = p.program.Name
	command.Env = append(toolchain.Inherited(), p.program.Env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = childAttributes()

	r := &run{command: command, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()
		err := command.Start()
		if err == nil {
			p.note(command.Process.Pid)
		}
		started <- err
		if err != nil {
			return
		}
		r.err = command.Wait()
		p.forget(command.Process.Pid)
		if p.ended != nil {
			p.ended()
		}
		close(r.exited)
		p.closeNews()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.run = r
	return r, nil
}

// note records for the janitor a process to kill should this one die.
func (p *Process) note(pid int) {
	_ = os.WriteFile(filepath.Join(p.pidDir, strconv.Itoa(pid)), nil, 0o600)
}

func (p *Process) forget(pid int) {
	_ = os.Remove(filepath.Join(p.pidDir, strconv.Itoa(pid)))
}

func (p *Process) awaitReady(ctx context.Context, r *run) error {
	if p.program.Ready == nil {
		return nil
	}
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	last := errors.New("not asked yet")
	for {
		select {
		case <-r.exited:
			return fmt.Errorf("it ended before it was ready: %w", errors.Join(r.err, last))
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (last: %w)", ctx.Err(), last)
		case <-ticker.C:
		}
		if last = p.program.Ready(ctx); last == nil {
			return nil
		}
	}
}
