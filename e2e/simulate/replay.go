package simulate

import (
	"context"
	"fmt"
	"io"
)

// Replay runs the history in a file and says what it breaks. It returns whether it breaks anything.
func Replay(ctx context.Context, out io.Writer, file string, verbose bool) (found bool, err error) {
	h, err := ReadHistory(file)
	if err != nil {
		return false, &UsageError{err}
	}
	p, err := startProcess(ctx)
	if err != nil {
		return false, err
	}
	defer p.end()
	fmt.Fprintln(out, h.Words(Catalogue()))
	o, err := p.do(job{History: h, Verbose: verbose})
	if err != nil {
		return true, err
	}
	for _, line := range o.Journal {
		fmt.Fprintln(out, line)
	}
	if o.Strayed > 0 {
		fmt.Fprintf(out, "%d decisions of the trace could not be followed\n", o.Strayed)
	}
	for _, v := range o.Violations {
		fmt.Fprintf(out, "breaks the law %q (%s)\n  %s: %s\n", v.Law, v.Signature, v.Subject, v.Text)
	}
	if len(o.Violations) == 0 {
		fmt.Fprintf(out, "breaks no law; judged: %s\n", listing(o.Judged))
	}
	return len(o.Violations) > 0, nil
}
