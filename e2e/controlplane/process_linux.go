package controlplane

import "syscall"

// childAttributes make the kernel kill a child whose parent dies. A process group of its own keeps
// the terminal's Ctrl-C from it: the parent decides in which order things end.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
