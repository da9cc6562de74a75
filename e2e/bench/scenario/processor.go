package scenario

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// usage is the processor time that processes have used, by their names. On a busy machine it is steadier than durations.
type usage map[string]time.Duration

// usage is that of the control plane, of pod-reloader, of the programs for the floor, and of the benchmark itself, which
// watches and plays the Service.
func (w *world) usage() (usage, error) {
	processes := map[string]int{"bench": os.Getpid()}
	for _, name := range []string{controlplane.Etcd, controlplane.APIServer} {
		processes[name] = w.cp.Component(name).PID()
	}
	for _, r := range w.in.Replicas() {
		processes[r.Name()] = r.PID()
	}
	for _, p := range w.floors {
		processes[p.Name()] = p.PID()
	}
	used := usage{}
	for name, pid := range processes {
		var err error
		if used[name], err = processorTime(pid); err != nil {
			return nil, fmt.Errorf("read the processor time of %s: %w", name, err)
		}
	}
	return used, nil
}

// since is the difference to an earlier state.
func (u usage) since(earlier usage) usage {
	difference := usage{}
	for name, used := range u {
		difference[name] = used - earlier[name]
	}
	return difference
}

func (u usage) total() time.Duration {
	var total time.Duration
	for _, used := range u {
		total += used
	}
	return total
}

// String lists the processes by their use, negligible ones left out.
func (u usage) String() string {
	var names []string
	for name, used := range u {
		if used*50 > u.total() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var text []byte
	for _, name := range names {
		text = fmt.Appendf(text, "%s %s, ", name, u[name].Round(10*time.Millisecond))
	}
	return string(bytes.TrimSuffix(text, []byte(", ")))
}

// ticks is how many of the kernel's units of processor time are a second, on every architecture that Go knows.
const ticks = 100

// processorTime is the time that a process has used, in user mode and in the kernel.
func processorTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field, the name in parentheses, may have blanks in it; utime and stime are the 14th and 15th.
	_, rest, _ := bytes.Cut(content, []byte(") "))
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("a line with %d fields", len(fields))
	}
	var sum int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}
