package alert

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// payload returns the body of the request for a reload. All sinks take JSON.
func (c Config) payload(r Reload) ([]byte, error) {
	var body any
	switch c.Sink {
	case Slack:
		body = slack(c.text(r, "*"))
	case Teams:
		body = teams(c.text(r, "**"))
	case GChat:
		body = map[string]string{"text": c.text(r, "*")}
	case Webhook:
		body = c.report(r)
	default:
		return nil, fmt.Errorf("unknown sink %q", c.Sink)
	}
	return json.Marshal(body)
}

// text is the message in one sentence, with the names of objects between marks for bold type.
func (c Config) text(r Reload, bold string) string {
	var b strings.Builder
	if c.Info != "" {
		b.WriteString(c.Info + " : ")
	}
	format := "reloaded %[1]s%[2]s %[3]s/%[4]s%[1]s"
	if r.NotReloaded {
		format = "not reloaded %[1]s%[2]s %[3]s/%[4]s%[1]s"
	}
	fmt.Fprintf(&b, format, bold, r.Kind, r.Namespace, r.Name)
	if r.Pending != "" {
		b.WriteString(", rollout pending (" + r.Pending + ")")
	}
	parts := make([]string, 0, len(r.Changes)+1)
	for _, change := range r.Changes {
		parts = append(parts, fmt.Sprintf("%[1]s%[2]s/%[3]s%[1]s %[4]s", bold, change.Kind, change.Name, change.Type))
	}
	switch {
	case r.More > 0 && len(parts) > 0:
		parts = append(parts, fmt.Sprintf("%d more", r.More))
	case r.More > 0:
		parts = append(parts, fmt.Sprintf("%d changes", r.More))
	}
	if len(parts) == 0 {
		parts = append(parts, strings.ReplaceAll(r.Cause, "-", " "))
	}
	b.WriteString(": " + strings.Join(parts, ", "))
	return b.String()
}

// slack is a message of an incoming webhook, with the text as an attachment as Reloader writes it.
func slack(text string) any {
	type attachment struct {
		Fallback string   `json:"fallback"`
		Color    string   `json:"color"`
		Author   string   `json:"author_name"`
		Text     string   `json:"text"`
		Markdown []string `json:"mrkdwn_in"`
	}
	return map[string][]attachment{"attachments": {{
		Fallback: strings.ReplaceAll(text, "*", ""), Color: "good", Author: "pod-reloader", Text: text, Markdown: []string{"text"},
	}}}
}

// teams is a message with an adaptive card, which both the workflows of Teams and its older connectors take.
func teams(text string) any {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
		Wrap bool   `json:"wrap"`
	}
	type card struct {
		Schema  string  `json:"$schema"`
		Type    string  `json:"type"`
		Version string  `json:"version"`
		Body    []block `json:"body"`
	}
	type attachment struct {
		ContentType string `json:"contentType"`
		Content     card   `json:"content"`
	}
	type message struct {
		Type        string       `json:"type"`
		Attachments []attachment `json:"attachments"`
	}
	return message{Type: "message", Attachments: []attachment{{
		ContentType: "application/vnd.microsoft.card.adaptive",
		Content: card{
			Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.2",
			Body: []block{{Type: "TextBlock", Text: text, Wrap: true}},
		},
	}}}
}

// report is the payload for programs.
func (c Config) report(r Reload) any {
	type workload struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	type report struct {
		Event    string   `json:"event"`
		Time     string   `json:"time"`
		Text     string   `json:"text"`
		Workload workload `json:"workload"`
		Cause    string   `json:"cause"`
		Changes  []Change `json:"changes"`
		More     int      `json:"more,omitempty"`
		Pending  string   `json:"pending,omitempty"`
		Info     string   `json:"additionalInfo,omitempty"`
	}
	changes := r.Changes
	if changes == nil {
		changes = []Change{}
	}
	event := "reload"
	if r.NotReloaded {
		event = "change"
	}
	return report{
		Event: event, Time: r.Time.UTC().Format(time.RFC3339Nano), Text: c.text(r, ""),
		Workload: workload{r.Kind, r.Namespace, r.Name},
		Cause:    r.Cause, Changes: changes, More: r.More, Pending: r.Pending, Info: c.Info,
	}
}
