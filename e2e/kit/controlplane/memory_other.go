//go:build unix && !linux

package controlplane

import "errors"

var errNoMemory = errors.New("the memory of a process is known on Linux only, which has /proc")

// ResidentMemory is how much memory of the machine the process holds now, in bytes.
func (p *Process) ResidentMemory() (int64, error) { return 0, errNoMemory }

// PeakMemory is the most memory that the process ever held, in bytes.
func (p *Process) PeakMemory() (int64, error) { return 0, errNoMemory }
