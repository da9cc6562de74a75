package simulate

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/pkg/cli"
)

// showBlindness hands the oracle what the program says of itself while it cannot watch something: its metrics, and what
// `pod-reloader why` prints to a user.
func (s *simulation) showBlindness() {
	s.scrape()
	var question oracle.Question
	var ok bool
	s.oracle.ask(func(o *oracle.Oracle) { question, ok = o.AskWhy(time.Now()) })
	if !ok || s.closing {
		return
	}
	s.acting.Add(1)
	s.acts.Go(func() {
		defer s.acting.Add(-1)
		printed := s.why(question)
		s.oracle.ask(func(o *oracle.Oracle) { o.Why(question, printed, time.Now()) })
	})
}

// why runs `pod-reloader why` as a user does.
func (s *simulation) why(q oracle.Question) string {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	network := s.net
	config := &rest.Config{Host: apiURL, QPS: -1, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		return network.Dial(ctx, userHost, address)
	}, WrapTransport: func(next http.RoundTripper) http.RoundTripper { return s.shortcut(s.userOnline, next, userHost) }}
	var out bytes.Buffer
	code := cli.Run(ctx, cli.Process{
		Args:   append([]string{"why", q.Workload.Resource.Kind + "/" + q.Workload.Name, "--namespace=" + q.Workload.Namespace, "--installation-namespace=" + installation}, s.namesForWhy()...),
		Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, Version: "simulated", Cluster: config,
	})
	s.note("why %s: %d\n%s", q.Workload, code, out.String())
	if code != 0 {
		return fmt.Sprintf("exit code %d\n%s", code, out.String())
	}
	return out.String()
}

// namesForWhy returns the flags of the installation without which `pod-reloader why` looks for other names.
func (s *simulation) namesForWhy() []string {
	return slices.DeleteFunc(slices.Clone(s.flags), func(flag string) bool {
		return !strings.HasPrefix(flag, prefixFlag) && !strings.HasPrefix(flag, argoFlag) && !strings.HasPrefix(flag, ignoredFlag)
	})
}
