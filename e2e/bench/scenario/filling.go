package scenario

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// filling is what it took a program to fill its cache, as seen from outside.
type filling struct {
	objects int
	// took is the time, used that of the processors.
	took, used time.Duration
	// peak is the most memory that the process held until then, held what was left after a rest, in bytes.
	peak, held int64
}

// filled runs a program of package subject, a process for this one time.
func filled(ctx context.Context, program string, args ...string) (found filling, err error) {
	path, err := installation.Build(ctx, program)
	if err != nil {
		return filling{}, err
	}
	const patience = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := &subjectProcess{command: exec.CommandContext(ctx, path, args...)}
	if err := p.start(); err != nil {
		return filling{}, fmt.Errorf("run %s: %w", filepath.Base(path), err)
	}
	if found, err = p.fill(); err != nil {
		cancel()
	}
	if err = errors.Join(err, p.end()); err != nil {
		return filling{}, fmt.Errorf("run %s: %w\n%s", filepath.Base(path), err, &p.log)
	}
	return found, nil
}

// subjectProcess gives orders to a program of package subject.
type subjectProcess struct {
	command *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
	log     bytes.Buffer
}

// start returns when the program is ready for orders.
func (p *subjectProcess) start() error {
	p.command.Stderr = &p.log
	answers, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	p.answers = bufio.NewReader(answers)
	if p.orders, err = p.command.StdinPipe(); err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
	if _, err := p.answers.ReadString('\n'); err != nil {
		return errors.Join(err, p.end(), errors.New(p.log.String()))
	}
	return nil
}

// end returns when the program has ended.
func (p *subjectProcess) end() error {
	return errors.Join(p.orders.Close(), p.command.Wait())
}

// order returns the answer.
func (p *subjectProcess) order(what string) (string, error) {
	if _, err := fmt.Fprintln(p.orders, what); err != nil {
		return "", fmt.Errorf("order to %s: %w", what, err)
	}
	answer, err := p.answers.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("answer to the order to %s: %w", what, err)
	}
	return strings.TrimSpace(answer), nil
}

func (p *subjectProcess) fill() (found filling, err error) {
	pid := p.command.Process.Pid
	before, err := processorTime(pid)
	if err != nil {
		return filling{}, err
	}
	began := time.Now()
	answer, err := p.order("fill")
	if err != nil {
		return filling{}, err
	}
	found.took = time.Since(began)
	if found.objects, err = strconv.Atoi(answer); err != nil {
		return filling{}, fmt.Errorf("read the number of objects: %w", err)
	}
	after, err := processorTime(pid)
	if err != nil {
		return filling{}, err
	}
	found.used = after - before
	if found.peak, err = controlplane.ProcessMemory(pid, "VmHWM"); err != nil {
		return filling{}, err
	}
	if _, err := p.order("rest"); err != nil {
		return filling{}, err
	}
	found.held, err = controlplane.ProcessMemory(pid, "VmRSS")
	return found, err
}
