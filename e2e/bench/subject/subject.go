// Package subject is what programs have in common that are measured from outside while they fill a cache: the floor and
// the program it is a floor for. They differ in the cache alone.
package subject

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
)

// Subject fills a cache on an order.
type Subject struct {
	// Fill returns when the cache is filled, with the number of objects in it and whatever keeps it in memory.
	Fill func(ctx context.Context) (cache any, objects int, err error)
	// Profile is a file for the use of the processors while Fill runs; empty means none.
	Profile string
}

// Serve says "ready", then obeys the orders that come as lines of any text, and answers each by a line when it has been
// carried out. The first order is to fill the cache, and its answer is the number of objects. The second one is to give
// back to the kernel what memory is not in use. It returns at the end of the input.
func (s Subject) Serve(ctx context.Context, orders io.Reader, answers io.Writer) error {
	lines := bufio.NewScanner(orders)
	if _, err := fmt.Fprintln(answers, "ready"); err != nil || !lines.Scan() {
		return errors.Join(err, lines.Err())
	}
	cache, objects, err := s.profiled(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(answers, objects); err != nil || !lines.Scan() {
		return errors.Join(err, lines.Err())
	}
	debug.FreeOSMemory()
	_, err = fmt.Fprintln(answers, "rested")
	for lines.Scan() {
		continue
	}
	runtime.KeepAlive(cache)
	return errors.Join(err, lines.Err())
}

func (s Subject) profiled(ctx context.Context) (cache any, objects int, err error) {
	if s.Profile == "" {
		return s.Fill(ctx)
	}
	file, err := os.Create(s.Profile)
	if err != nil {
		return nil, 0, fmt.Errorf("store a profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, 0, fmt.Errorf("take a profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return s.Fill(ctx)
}
