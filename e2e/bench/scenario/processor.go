package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// usage is the processor time that processes have used, by their names. On a busy machine it is steadier than durations.
type usage map[string]time.Duration

// usage is that of the control plane, of pod-reloader, of the programs for the floor, and of the benchmark itself, which
// watches and does what the Service does.
func (e *environment) usage() (usage, error) {
	processes := map[string]int{"bench": os.Getpid()}
	for _, name := range []string{controlplane.Etcd, controlplane.APIServer} {
		processes[name] = e.cp.Component(name).PID()
	}
	for _, r := range e.installation.Replicas() {
		processes[r.Name()] = r.PID()
	}
	for _, p := range e.floors.running {
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

// processorTime is the time that the threads of a process have used, in user mode and in the kernel. The runtime of Go ends next to none.
// The kernel counts it in nanoseconds here, and in ticks of 10 ms for the process as a whole.
func processorTime(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	if len(threads) == 0 {
		return 0, fmt.Errorf("process %d does not run, or its kernel counts no nanoseconds", pid)
	}
	var sum time.Duration
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended since
		}
		if err != nil {
			return 0, err
		}
		used, _, _ := strings.Cut(string(content), " ")
		nanoseconds, err := strconv.ParseInt(used, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(nanoseconds)
	}
	return sum, nil
}
