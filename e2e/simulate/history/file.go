package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// encoded is a History whose steps are still text, so that an error can name the step. Its fields are those of History.
type encoded struct {
	Form  *int              `json:"form"`
	Law   string            `json:"law,omitempty"`
	About string            `json:"about,omitempty"`
	Seed  uint64            `json:"seed"`
	Setup json.RawMessage   `json:"setup"`
	Steps []json.RawMessage `json:"steps"`
	Trace []string          `json:"trace,omitempty"`
}

// Read reads a history from a file and checks its form and, with the catalogue, its steps. The error names the file, and
// the step and the field that are wrong.
func Read(name string, c Catalogue) (History, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return History{}, fmt.Errorf("read history: %w", err)
	}
	h, err := Decode(data)
	if err == nil {
		err = c.Check(h)
	}
	if err != nil {
		return History{}, fmt.Errorf("read history %s: %w", name, err)
	}
	return h, nil
}

// Check returns an error, which names the step and the field, if a step is not in the catalogue or makes no sense.
func (c Catalogue) Check(h History) error {
	for i, s := range h.Steps {
		e, ok := c.Find(s.Do)
		if !ok {
			return fmt.Errorf("step %d: do: unknown act %q", i+1, s.Do)
		}
		if e.Check == nil {
			continue
		}
		if err := e.Check(s); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s.Do, err)
		}
	}
	return nil
}

// Decode reads a history from JSON. The steps are not compared with a catalogue.
func Decode(data []byte) (History, error) {
	e := encoded{}
	if err := strictly(data, &e); err != nil {
		return History{}, err
	}
	if err := checkForm(e.Form); err != nil {
		return History{}, fmt.Errorf("form: %w", err)
	}
	h := History{Form: Form, Law: e.Law, About: e.About, Seed: e.Seed, Trace: e.Trace}
	if len(e.Setup) == 0 {
		return History{}, errors.New("setup: missing")
	}
	if err := strictly(e.Setup, &h.Setup); err != nil {
		return History{}, fmt.Errorf("setup: %w", err)
	}
	if err := h.Setup.check(); err != nil {
		return History{}, fmt.Errorf("setup.%w", err)
	}
	if e.Steps == nil {
		return History{}, errors.New("steps: missing; a history without any has []")
	}
	for i, text := range e.Steps {
		s, err := decodeStep(text)
		if err != nil {
			return History{}, fmt.Errorf("step %d: %w", i+1, err)
		}
		h.Steps = append(h.Steps, s)
	}
	return h, nil
}

// checkForm says what to do with a file of another form.
func checkForm(form *int) error {
	switch {
	case form == nil:
		return fmt.Errorf("missing; a history has \"form\": %d", Form)
	case *form < Form:
		return fmt.Errorf("%d is older than %d, which this program reads: replay it with the version that wrote it, or write it anew", *form, Form)
	case *form > Form:
		return fmt.Errorf("%d is newer than %d, which this program reads: use the version of this program that wrote it", *form, Form)
	}
	return nil
}

// longestWait keeps the sum of all waits within a time.Duration.
const longestWait = 24 * time.Hour

func decodeStep(text []byte) (Step, error) {
	e := struct {
		Wait string            `json:"wait"`
		Do   string            `json:"do"`
		On   string            `json:"on"`
		With map[string]string `json:"with"`
	}{}
	if err := strictly(text, &e); err != nil {
		return Step{}, err
	}
	if e.Do == "" {
		return Step{}, errors.New("do: missing")
	}
	s := Step{Do: e.Do, On: e.On, With: e.With}
	if e.Wait == "" {
		return s, nil
	}
	if err := s.Wait.UnmarshalText([]byte(e.Wait)); err != nil {
		return Step{}, fmt.Errorf("wait: %w", err)
	}
	if s.Wait > Duration(longestWait) {
		return Step{}, fmt.Errorf("wait: %s is longer than %s", e.Wait, longestWait)
	}
	return s, nil
}

// strictly decodes one JSON value that has no unknown fields and nothing behind it.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("decode: text after the end, at byte %d", d.InputOffset())
	}
	return nil
}

// MostReplicas bounds Setup.Replicas against typing errors.
const MostReplicas = 9

// mostLatency bounds Setup.Latency: a program that is always slower is no subject of the laws.
const mostLatency = 200 * time.Millisecond

// check names the field that is wrong.
func (s Setup) check() error {
	if s.Replicas < 0 || s.Replicas > MostReplicas {
		return fmt.Errorf("replicas: %d is not from 0 to %d", s.Replicas, MostReplicas)
	}
	if s.Second != nil && (s.Second.Replicas < 1 || s.All() > MostReplicas) {
		return fmt.Errorf("second.replicas: want 1 at least, and not more than %d together with replicas", MostReplicas)
	}
	if d := time.Duration(s.Latency); d > mostLatency {
		return fmt.Errorf("latency: %s is longer than %s", d, mostLatency)
	}
	if s.CrashAtWrite < 0 {
		return fmt.Errorf("crashAtWrite: %d is negative; writes count from 1, and 0 is none of them", s.CrashAtWrite)
	}
	switch s.FailurePolicy {
	case "", "Ignore", "Fail":
	default:
		return fmt.Errorf("failurePolicy: %q is not Ignore or Fail", s.FailurePolicy)
	}
	switch s.OtherWebhooks {
	case "", "before", "after", "around", "checksum":
	default:
		return fmt.Errorf("otherWebhooks: %q is not before, after, around or checksum", s.OtherWebhooks)
	}
	return nil
}

// Write writes a history to a file.
func Write(name string, h History) error {
	data, err := Encode(h)
	if err != nil {
		return fmt.Errorf("write history %s: %w", name, err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Encode returns a history as JSON of the current Form, each step on a line of its own.
func Encode(h History) ([]byte, error) {
	h.Form = Form
	steps := h.Steps
	h.Steps = []Step{}
	data, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	lines := []byte("\n  \"steps\": [")
	for i, s := range steps {
		line, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("encode step %d: %w", i+1, err)
		}
		if i > 0 {
			lines = append(lines, ',')
		}
		lines = append(append(lines, "\n    "...), line...)
	}
	if len(steps) > 0 {
		lines = append(lines, "\n  "...)
	}
	lines = append(lines, ']')
	// A line break inside a JSON text is escaped, so that only the field itself is found.
	data = bytes.Replace(data, []byte("\n  \"steps\": []"), lines, 1)
	return append(data, '\n'), nil
}
