package simulate

import (
	"fmt"
	"io"
	"log"
	"sync"
	"time"
)

// journal has what happened in a run, in words. It is safe for concurrent use.
type journal struct {
	on    bool
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(at time.Duration, format string, args ...any) {
	if !j.on {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%12s  ", at.Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

// quietLog drops what net/http says of broken connections: the faults break them.
func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }
