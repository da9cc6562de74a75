package watch

import "math"

// maxExact is the largest float64 below which every whole number is exact.
const maxExact = 1 << 53

// wholeToInt turns the whole float64 values within ±2^53 of a JSON object into
// int64, in place. A second run changes nothing.
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
