package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// childAttributes make the kernel kill a child whose parent dies. A process group of its own keeps
// the terminal's Ctrl-C from it: the parent decides in which order things end.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether every thread of a process has stopped, or ended: a signal is sent in no time, but each thread acts
// on it when it is next scheduled.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false // the pattern is right
	}
	for _, path := range threads {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The state follows the name of the program, which is in parentheses.
		state := bytes.TrimSpace(content[bytes.LastIndexByte(content, ')')+1:])
		if !bytes.ContainsAny(state[:1], "TtZX") {
			return false
		}
	}
	return true
}
