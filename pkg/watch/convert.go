package watch

import "math"

// maxExact is the largest whole number that is certainly the one which was
// written: 2^53 as a float64 may have been 2^53+1.
const maxExact = 1<<53 - 1

// wholeToInt turns the whole float64 values of a JSON object into int64, in
// place, between -2^53 and 2^53: others may have been rounded, and stay as they
// are. A second run changes nothing.
func wholeToInt(fields map[string]any) {
	for name, value := range fields {
		if number, ok := whole(value); ok {
			fields[name] = number
		}
	}
}

// whole returns the number that a whole float64 is. Those inside a value are
// replaced.
func whole(value any) (int64, bool) {
	switch value := value.(type) {
	case map[string]any:
		wholeToInt(value)
	case []any:
		for i, item := range value {
			if number, ok := whole(item); ok {
				value[i] = number
			}
		}
	case float64:
		return int64(value), value == math.Trunc(value) && math.Abs(value) <= maxExact
	}
	return 0, false
}
