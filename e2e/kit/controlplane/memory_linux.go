package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ProcessMemory is a figure of the kernel about the memory of a process, in bytes: VmRSS is what is resident, VmHWM the
// most that ever was.
func ProcessMemory(pid int, field string) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	_, rest, _ := bytes.Cut(content, []byte("\n"+field+":"))
	line, _, found := bytes.Cut(rest, []byte(" kB\n"))
	if !found {
		return 0, fmt.Errorf("read the memory of process %d: no %s in its status", pid, field)
	}
	kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kilobytes << 10, nil
}
