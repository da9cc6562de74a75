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
		switch value := value.(type) {
		case map[string]any:
			wholeToInt(value)
		case []any:
			wholeItems(value)
		case float64:
			if whole(value) {
				fields[name] = int64(value)
			}
		}
	}
}

func wholeItems(items []any) {
	for i, value := range items {
		switch value := value.(type) {
		case map[string]any:
			wholeToInt(value)
		case []any:
			wholeItems(value)
		case float64:
			if whole(value) {
				items[i] = int64(value)
			}
		}
	}
}

func whole(value float64) bool {
	return value == math.Trunc(value) && math.Abs(value) <= maxExact
}
