//go:build unix && !linux

package controlplane

import "syscall"

// childAttributes: without Linux's parent-death signal it is the janitor alone that ends the
// children of a killed parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// stopped takes a signal for delivered: without Linux's /proc there is no telling.
func stopped(int) bool { return true }
