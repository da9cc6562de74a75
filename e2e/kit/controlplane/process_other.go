//go:build unix && !linux

package controlplane

import "syscall"

// childAttributes: without Linux's parent-death signal it is the janitor alone that ends the
// children of a killed parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// stopped assumes that a signal is delivered: without Linux's /proc this cannot be read.
func stopped(int) bool { return true }
