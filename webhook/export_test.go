package webhook

import "github.com/pod-reloader/pod-reloader/pkg/fairlimit"

// Divide leaves h a part of what the reviews that are being decided may weigh, so that a test uses it up with less text.
func (h *Handler) Divide(parts int) {
	h.intake.reviews = fairlimit.NewWeighted(reviewsInFlight/parts, reviewsOfANamespace/parts, waitingOfANamespace/parts)
}

// LimitWarnings makes warnings fit for the headers in which they travel.
var LimitWarnings = limitWarnings
