package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The API's own types can always be encoded; a failure is a defect of the model.

func marshal(m interface{ Marshal() ([]byte, error) }) []byte {
	data, err := m.Marshal()
	if err != nil {
		panic(fmt.Errorf("encode %T: %w", m, err))
	}
	return data
}

func toJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode %T: %w", v, err))
	}
	return data
}

func toValues(part any) world.Object {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(part)
	if err != nil {
		panic(fmt.Errorf("convert %T: %w", part, err))
	}
	return values
}

func formatVersion(version int64) string { return strconv.FormatInt(version, 10) }
