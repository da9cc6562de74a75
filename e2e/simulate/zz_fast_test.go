package simulate

import (
	"fmt"
	"hash/fnv"
	mathrand "math/rand"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestFastP(t *testing.T) {
	c, _ := newCertificate()
	for _, faults := range []bool{false} {
		s := time.Now()
		req := 0
		var lasted time.Duration
		for i := range uint64(6) {
			r := Run(t, Draw(i+100, DrawOptions{Steps: 100, Faults: faults}), c, Options{})
			req += r.Requests
			lasted += r.Lasted
			fmt.Println(r.Requests, r.Reviews, r.Lasted, len(r.Trace), len(r.Violations))
		}
		fmt.Println(time.Since(s)/6, req/6, lasted/6)
	}
}
func TestFastS(t *testing.T) {
	c, _ := newCertificate()
	n, _ := strconv.Atoi(os.Getenv("S"))
	f := os.Getenv("F") != ""
	var prev []string
	for i := range 4 {
		mathrand.Seed(int64(n))
		r := Run(t, Draw(uint64(n), DrawOptions{Steps: 60, Faults: f}), c, Options{})
		h := fnv.New64()
		for _, l := range r.Trace {
			h.Write([]byte(l))
		}
		fmt.Println(i, len(r.Trace), h.Sum64(), r.Requests, len(r.Violations), r.Lasted)
		if prev != nil {
			for k := range prev {
				if k >= len(r.Trace) || prev[k] != r.Trace[k] {
					for j := max(0, k-3); j < k+6 && j < len(prev) && j < len(r.Trace); j++ {
						fmt.Println("   ", j, prev[j], " | ", r.Trace[j])
					}
					break
				}
			}
		}
		prev = r.Trace
		for _, v := range r.Violations {
			fmt.Println("   ", v.Signature, v.Subject, v.Text[:min(len(v.Text), 300)])
		}
	}
}
