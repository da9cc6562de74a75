// Package scorecard judges what the demo has observed against what was promised, and renders the table at its end. It is
// pure: it neither watches nor prints, and knows nothing of the program that is judged.
package scorecard
