package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// AuditLog is what the API server wrote about the requests that it served.
//
// The API server logs a request when it has received it and again when it has answered, and goes on
// only when the line is in the file. So whatever a client has an answer to is in the log already;
// only the outcome may lag by an instant, and Since waits for that.
type AuditLog struct {
	path string

	mutex    sync.Mutex
	offset   int64
	requests []*Request
	// open are the requests whose outcome is not known yet, by audit id.
	open map[string]*Request
}

// Mark is a point in the audit log.
type Mark int

func newAuditLog(path string) *AuditLog {
	return &AuditLog{path: path, open: map[string]*Request{}}
}

// Mark is the point after every request that was answered so far.
func (l *AuditLog) Mark() (Mark, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.read(); err != nil {
		return 0, err
	}
	return Mark(len(l.requests)), nil
}

// Since returns the recorded requests received after the mark, in the order of their arrival. Every
// request that was answered before the call is among them; it waits until the outcome of each is
// known, except of watches, which may last for ever.
func (l *AuditLog) Since(ctx context.Context, mark Mark) (Requests, error) {
	now, err := l.Mark()
	if err != nil {
		return nil, err
	}
	err = await(ctx, "the outcome of requests in the audit log", func(context.Context) error {
		return l.settled(mark, now)
	})
	if err != nil {
		return nil, err
	}
	return l.between(mark, now), nil
}

// All returns the requests since the start of the control plane.
func (l *AuditLog) All(ctx context.Context) (Requests, error) {
	return l.Since(ctx, 0)
}

// settled is an error while the outcome of a request between the marks is not known.
func (l *AuditLog) settled(from, to Mark) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.read(); err != nil {
		return err
	}
	for _, r := range l.requests[from:to] {
		if _, open := l.open[r.ID]; open && r.Verb != "watch" {
			return fmt.Errorf("%s %s by %s is not answered", r.Verb, r.URI, r.User)
		}
	}
	return nil
}

func (l *AuditLog) between(from, to Mark) Requests {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	requests := make(Requests, 0, to-from)
	for _, r := range l.requests[from:to] {
		requests = append(requests, *r)
	}
	return requests
}

// abandon is called when the API server has ended: what it had not answered it never will.
func (l *AuditLog) abandon() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.read(); err != nil {
		return // the next reader gets the same error, and returns it
	}
	clear(l.open)
}

// read takes in what was appended to the file since the last time. A line that is not complete yet
// is left for the next time.
func (l *AuditLog) read() error {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	lines := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		l.offset += int64(len(line))
		if err := l.take(bytes.TrimSpace(line)); err != nil {
			return err
		}
	}
}

// take notes one line: the arrival of a request, or what became of it.
func (l *AuditLog) take(line []byte) error {
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("a line of the audit log is no event: %w", err)
	}
	if e.Stage == "RequestReceived" {
		r := e.request()
		l.requests = append(l.requests, r)
		l.open[r.ID] = r
		return nil
	}
	r, known := l.open[e.AuditID]
	if !known {
		return nil // of a request that was abandoned with its API server
	}
	e.complete(r)
	if e.Stage != "ResponseStarted" {
		delete(l.open, e.AuditID)
	}
	return nil
}
