package apiserver

import (
	"encoding/json"
	"fmt"
	"strconv"
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

func formatVersion(version int64) string { return strconv.FormatInt(version, 10) }
