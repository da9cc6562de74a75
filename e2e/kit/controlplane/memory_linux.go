package controlplane

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ResidentMemory is how much memory of the machine the process holds now, in bytes: VmRSS.
func (p *Process) ResidentMemory() (int64, error) {
	return p.status("VmRSS:")
}

// PeakMemory is the most memory that the process ever held, in bytes: VmHWM.
func (p *Process) PeakMemory() (int64, error) {
	return p.status("VmHWM:")
}

func (p *Process) status(field string) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", p.Name(), err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		rest, found := bytes.CutPrefix(lines.Bytes(), []byte(field))
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(rest, []byte("kB")))), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the memory of %s: %w", p.Name(), err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("read the memory of %s: no %s in its status", p.Name(), field)
}
