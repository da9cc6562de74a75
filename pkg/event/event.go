// Package event puts what is told in Kubernetes Events into a form in which it arrives: client-go counts Events that look
// alike as one, and the API server refuses a note that is too long.
package event

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// longest is how many bytes a note may have; the API server takes 1024.
const longest = 1000

// Action is the action of an Event that may come again with another text while what it is about stays as it is. client-go
// counts an Event that agrees with an earlier one in reason, action and both objects on that one, whatever it says: the
// second text would be lost. A digest of the text in the action keeps them apart, and still lets it count what is the
// same.
func Action(verb, text string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // it never fails
	return fmt.Sprintf("%s-%08x", verb, sum.Sum32())
}

// Note is a text cut to the length that the API server takes, at a whole character.
func Note(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}
