package cluster

import (
	"strconv"
	"strings"
)

// scaled resolves a number or a percentage, as intstr.GetScaledValueFromIntOrPercent does.
func scaled(value any, otherwise string, total int, up bool) int {
	if n, ok := integer(value); ok {
		return int(n)
	}
	percentage, ok := value.(string)
	if !ok {
		percentage = otherwise
	}
	if !strings.HasSuffix(percentage, "%") {
		n, _ := strconv.Atoi(percentage)
		return n
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(percentage, "%"))
	if up {
		return (total*percent + 99) / 100
	}
	return total * percent / 100
}
