//go:build unix && !linux

package controlplane

import "errors"

// ProcessMemory is known on Linux only, which has /proc.
func ProcessMemory(int, string) (int64, error) {
	return 0, errors.New("the memory of a process is known on Linux only, which has /proc")
}
