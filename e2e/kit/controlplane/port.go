package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that Linux gives to outgoing connections (32768 and up), so
// that a component that is down for a moment cannot lose its port to a client.
const (
	firstPort = 20000
	lastPort  = 30000
)

// ports hands out TCP ports on loopback and keeps them reserved until release, also against other
// test processes and while they have no listener. The reservation of a TCP port is a bound UDP
// socket of the same number: the kernel lets only one process have it and takes it back when that
// process dies, and no file is needed.
type ports struct {
	reserved []net.PacketConn
}

// take reserves a port.
func (p *ports) take() (int, error) {
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		reservation, err := net.ListenPacket("udp4", loopback(port))
		if err != nil {
			continue
		}
		if !free(port) {
			_ = reservation.Close()
			continue
		}
		p.reserved = append(p.reserved, reservation)
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d on loopback", firstPort, lastPort)
}

// release gives all ports back.
func (p *ports) release() error {
	errs := make([]error, 0, len(p.reserved))
	for _, r := range p.reserved {
		errs = append(errs, r.Close())
	}
	p.reserved = nil
	return errors.Join(errs...)
}

// free reports whether the TCP port has no listener.
func free(port int) bool {
	listener, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
