package watchhealth

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// listEndMark is an annotation of the bookmark behind a streaming list. It is the same text in all encodings.
const listEndMark = metav1.InitialEventsAnnotationKey

// listEnd finds the end of a streaming list. Only that takes back a failure: a proxy may accept each request and hold back what follows,
// and a client that gives up the stream and lists instead asks for the next one soon. It keeps no bytes, since there may be Secrets.
type listEnd struct{ matched int }

// in reports whether the mark ends within the next bytes. The first byte of the mark occurs in it once, so that a match that fails has no
// other one within it.
func (e *listEnd) in(next []byte) bool {
	for _, b := range next {
		switch b {
		case listEndMark[e.matched]:
			e.matched++
		case listEndMark[0]:
			e.matched = 1
		default:
			e.matched = 0
		}
		if e.matched == len(listEndMark) {
			return true
		}
	}
	return false
}
