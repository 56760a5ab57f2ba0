package httpcall

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

var errDeadline = errors.New("the deadline was over before the first byte")

// past is a deadline that fails I/O at once.
var past = time.Unix(1, 0)

// counted counts the bytes that the kernel took.
type counted struct {
	net.Conn
	taken atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.taken.Add(int64(n))
	return n, err
}

// connection is the one connection of a call.
type connection struct {
	tcp    *counted
	stream net.Conn // tcp, or TLS over it
	before int64    // bytes that the kernel took before the request
}

// dial connects and, for https, shakes hands; all of it before the request.
func dial(ctx context.Context, r *request, opts Options) (*connection, error) {
	dialer := net.Dialer{KeepAlive: -1}
	raw, err := dialer.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	tcp := &counted{Conn: raw}
	c := &connection{tcp: tcp, stream: tcp}
	if err := raw.SetDeadline(opts.Deadline); err != nil {
		c.close(false)
		return nil, fmt.Errorf("set the deadline: %w", err)
	}
	if !r.https {
		return c, nil
	}
	secure := tls.Client(tcp, &tls.Config{
		ServerName: r.host,
		RootCAs:    opts.RootCAs,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
	})
	if err := secure.HandshakeContext(ctx); err != nil {
		c.close(false)
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	c.stream = secure
	return c, nil
}

// send writes the request, once. The check of the deadline is the last thing
// before the first byte (H2).
func (c *connection) send(ctx context.Context, wire []byte, opts Options) error {
	c.before = c.tcp.taken.Load()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !opts.Now().Before(opts.Deadline) {
		return errDeadline
	}
	_, err := c.stream.Write(wire)
	return err
}

// began reports whether the kernel took any byte since send started. Call it
// after send returned.
func (c *connection) began() bool { return c.tcp.taken.Load() > c.before }

func (c *connection) interrupt()      { _ = c.stream.SetDeadline(past) }
func (c *connection) interruptWrite() { _ = c.stream.SetWriteDeadline(past) }

// close resets the connection unless the exchange was complete: a plain close
// would go on to deliver what the kernel still holds (H5). It skips the TLS
// farewell, which could block.
func (c *connection) close(complete bool) {
	if tcp, ok := c.tcp.Conn.(*net.TCPConn); ok && !complete {
		_ = tcp.SetLinger(0)
	}
	_ = c.tcp.Close()
}
