package apiserver

import (
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// The bounds of kube-apiserver: when all warnings of an answer are longer than the first, each is cut to the second.
const (
	longestWarnings = 4096
	longestWarning  = 256
)

// warningHeaders returns the values of the Warning headers; what cannot be one is left out.
func warningHeaders(texts []string) []string {
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	var headers []string
	for _, text := range texts {
		if total > longestWarnings {
			if runes := []rune(text); len(runes) > longestWarning {
				text = string(runes[:longestWarning])
			}
		}
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			headers = append(headers, header)
		}
	}
	return headers
}
