package controlplane

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// cleanUp waits for the end of its input, which is the end of the process that started it, and then
// removes what that one left: processes noted in pids/, and the directory itself. While the
// processes die they may still write, hence the loop.
const cleanUp = `
cat >/dev/null
for noted in "$1"/pids/*; do
	[ -e "$noted" ] && kill -9 "${noted##*/}" 2>/dev/null
done
while [ -e "$1" ] && ! rm -rf "$1" 2>/dev/null; do sleep 0.1; done
`

// janitor is a small process that outlives this one to remove a control plane's directory and
// processes, however this one ends: by a signal, a panic, os.Exit or kill -9.
type janitor struct {
	command *exec.Cmd
	hold    io.Closer
}

func newJanitor(dir string) (*janitor, error) {
	command := exec.Command("/bin/sh", "-c", cleanUp, "janitor", dir)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	hold, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	return &janitor{command: command, hold: hold}, nil
}

// dismiss lets the janitor do its work now and waits for it.
func (j *janitor) dismiss() error {
	_ = j.hold.Close()
	if err := j.command.Wait(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
