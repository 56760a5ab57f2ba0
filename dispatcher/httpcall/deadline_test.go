package httpcall

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

var discard = log.New(io.Discard, "", 0)

func (s *service) drainTCP(c *net.TCPConn) { s.drain(c) }

// H2: the deadline passes between the dial and the first byte.
func TestDeadlineBeforeTheFirstByte(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, func(s *service, c *net.TCPConn) { s.drain(c); close(ended) })
	opts := ample()
	opts.Now = secondReading(func() time.Time { return opts.Deadline })
	want(t, do(t, post(s.url()), opts), NotSent, "not_sent")
	<-ended
	if n := s.bytes.Load(); n != 0 {
		t.Fatalf("%d bytes left after the deadline", n)
	}
}

// H2: over before the dial.
func TestDeadlineBeforeTheDial(t *testing.T) {
	s := serve(t, (*service).drainTCP)
	want(t, do(t, post(s.url()), within(-time.Nanosecond)), NotSent, "not_sent")
	want(t, do(t, post(s.url()), Options{Now: time.Now}), NotSent, "not_sent")
	if n := s.connections(); n != 0 {
		t.Fatalf("%d connections after the deadline", n)
	}
}

// H3: the dial itself does not end in time.
func TestDeadlineInTheDial(t *testing.T) {
	address := deafPort(t)
	want(t, do(t, post("http://"+address+"/"), within(50*time.Millisecond)), NotSent, "not_sent")
}

// deafPort listens without accepting and has its queue full.
func deafPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
	for range 16 {
		c, err := net.DialTimeout("tcp", address, 20*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("the queue of this system does not fill")
	return ""
}

// H4, H7: progress does not extend the deadline.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *service, c *net.TCPConn) {
		s.request(c)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for err == nil {
			select {
			case <-tick.C:
				_, err = c.Write([]byte("x"))
			case <-s.done:
				return
			}
		}
	})
	got := do(t, post(s.url()), within(300*time.Millisecond))
	want(t, got, Lost, "timeout")
	if got.Status != 200 {
		t.Fatalf("the head said 200, not %d", got.Status)
	}
}

// H4: no answer at all.
func TestSilence(t *testing.T) {
	t.Parallel()
	s := serve(t, (*service).drainTCP)
	want(t, do(t, post(s.url()), within(300*time.Millisecond)), Lost, "timeout")
}

// H5: a request that the service did not take until the deadline is not
// delivered later: the connection is reset with what is still unsent.
func TestUnreadRequestIsWithdrawn(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	over := make(chan struct{})
	read := make(chan int64, 1)
	s := serve(t, func(_ *service, c *net.TCPConn) {
		<-over
		n, err := io.Copy(io.Discard, c)
		if err == nil {
			n = size
		}
		read <- n
	})
	call := post(s.url())
	call.Body = make([]byte, size)
	got := do(t, call, within(300*time.Millisecond))
	close(over)
	want(t, got, Lost, "timeout")
	if n := <-read; n >= size {
		t.Fatalf("the connection ended in order after %d bytes", n)
	}
	if !strings.Contains(got.Detail, "not written to its end") {
		t.Fatal(got.Detail)
	}
}

// H4: cancellation after the first byte is unknown, by its cause.
func TestCancelledAfterTheFirstByte(t *testing.T) {
	stop := errors.New("stop")
	for name, c := range map[string]struct {
		cause  error
		reason string
	}{"shutdown": {stop, "shutdown"}, "other": {errors.New("other"), "adapter_error"}, "none": {nil, "adapter_error"}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			s := serve(t, func(s *service, conn *net.TCPConn) {
				s.request(conn)
				cancel(c.cause)
				s.drain(conn)
			})
			opts := ample()
			opts.Shutdown = stop
			want(t, doUnder(t, ctx, post(s.url()), opts), Lost, c.reason)
		})
	}
}

// H3: cancellation before the first byte.
func TestCancelledBeforeTheFirstByte(t *testing.T) {
	s := serve(t, (*service).drainTCP)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("stop"))
	want(t, doUnder(t, ctx, post(s.url()), ample()), NotSent, "not_sent")
	ctx, late := context.WithCancel(context.Background())
	opts := ample()
	opts.Now = secondReading(func() time.Time { late(); return opts.Deadline })
	want(t, doUnder(t, ctx, post(s.url()), opts), NotSent, "not_sent")
}
