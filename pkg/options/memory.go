package options

import (
	"fmt"
	"strconv"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// podMemoryLimit is the variable with the memory limit of the container, from the downward API, which cannot compute.
const podMemoryLimit = "POD_MEMORY_LIMIT"

// memoryLimit returns 90 % of the container's memory limit. The rest is for what the Go runtime does not count, such as the
// program itself. The collector then works harder before the kernel ends the process.
func memoryLimit(p *problems, env Environment) int64 {
	text := env.Getenv(podMemoryLimit)
	if text == "" || env.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		p.variable(podMemoryLimit, fmt.Errorf("%s: want a number of bytes", reference.Quote(text)))
		return 0
	}
	return limit / 10 * 9
}
