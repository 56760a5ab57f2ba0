package eventlog

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and the server. Once it is armed, it swallows
// everything from the next publish to the log on, until the connection is cut:
// what the server answers, or, if so armed, what the client sends.
type proxy struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	armed  loss
	lost   loss
	conns  []net.Conn
	passed chan struct{} // a publish came while armed
}

type loss int

const (
	nothing loss = iota
	answers
	requests
)

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: server, passed: make(chan struct{}, 1)}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) arm(l loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = l
}

// cut ends the connections; later ones lose nothing.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns, p.armed, p.lost = nil, nothing, nothing
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(server, client, p.request) })
		p.wg.Go(func() { p.pass(client, server, p.answer) })
	}
}

func (p *proxy) pass(to, from net.Conn, filter func([]byte) []byte) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(filter(buf[:n])); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) request(b []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed != nothing && bytes.Contains(b, []byte("HPUB effects.log ")) {
		p.armed, p.lost = nothing, p.armed
		p.passed <- struct{}{}
	}
	return p.unless(requests, b)
}

func (p *proxy) answer(b []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unless(answers, b)
}

func (p *proxy) unless(l loss, b []byte) []byte {
	if p.lost == l {
		return nil
	}
	return b
}
